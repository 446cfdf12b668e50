// Covering arrays: few rows in which each pair of buckets of two dimensions occurs, of those pairs that can. Which can is
// not known beforehand (an op's rules are expressions), so it is found by trying to make a case of each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/case.hpp"

namespace dcpcheck {

// Per dimension a bucket; -1: none, be it that the case has no such thing, or that nothing is asked for.
using Buckets = std::vector<int>;

// A set of pairs of buckets, each of another dimension.
class PairSet {
 public:
  // `sizes`: how many buckets each dimension has.
  explicit PairSet(std::vector<int> sizes);

  bool contains(int dimension, int bucket, int other_dimension, int other_bucket) const;
  void add(int dimension, int bucket, int other_dimension, int other_bucket);
  void add(const Buckets& row);  // all pairs in it
  std::int64_t size() const { return size_; }

  // Calls visit(dimension, bucket, other dimension, other bucket) for each pair that there is, in the set or not, the
  // lower dimension first.
  void every(const std::function<void(int, int, int, int)>& visit) const;

 private:
  std::size_t index(int dimension, int bucket, int other_dimension, int other_bucket) const;

  std::vector<int> sizes_, first_;  // first_: the number of the dimension's first bucket among all
  int total_ = 0;
  std::int64_t size_ = 0;
  std::vector<bool> in_;
};

// What a case is asked to be. A case that misses one of `must` is no answer; `may` is met where it can be.
struct Wishes {
  Buckets must, may;
};

struct CoveringRow {
  Buckets buckets;
  Case witness;  // a case that is in them
};

// Makes a case, and says in which buckets it is; nothing where it found none. `trial` counts the attempts at one pair.
using Attempt = std::function<std::optional<CoveringRow>(const Wishes&, int trial)>;

struct CoveringArray {
  std::vector<CoveringRow> rows;
  PairSet met;         // by the rows
  PairSet infeasible;  // no case was found in `trials` attempts
  int attempts = 0;    // all there were
  std::int64_t feasible() const { return met.size(); }
};

// Greedy: each row is asked for a pair that no row has yet, and besides for what gives the most others. `trials`: how
// often a pair is tried before it counts as infeasible.
CoveringArray make_covering_array(const std::vector<int>& sizes, const Attempt& attempt, int trials);

}  // namespace dcpcheck
