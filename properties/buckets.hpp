// In what cases of an op can differ, cut into buckets: made from the Op value alone, so that a user's own op has them,
// too. Generators aim at them, and coverage is measured in them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/core/json.hpp"
#include "harness/core/plan.hpp"
#include "properties/covering.hpp"

namespace dcpcheck {

struct Dimension {
  std::string name;                           // "padding.slots", "mla.block_size", "param.index_topk", "layout.q_c", …
  std::vector<std::string> buckets;           // at least two
  std::function<int(const Plan&)> bucket_of;  // -1 where the case has no such thing: the block size of an absent cache
};

// The dimensions of `op`, which must outlive them, geometry first.
std::vector<Dimension> dimensions_of(const Op& op);

std::vector<int> sizes_of(const std::vector<Dimension>& dimensions);
Buckets buckets_of(const std::vector<Dimension>& dimensions, const Plan& plan);

// What a set of cases has met.
class Coverage {
 public:
  // `dimensions` must outlive it; `feasible`: the pairs that cases are known to exist for.
  Coverage(const std::vector<Dimension>& dimensions, PairSet feasible);

  void add(const Plan& plan);

  std::int64_t cases() const { return cases_; }
  std::int64_t met() const;  // of the feasible pairs
  std::int64_t feasible() const { return feasible_.size(); }
  std::int64_t unforeseen() const;  // pairs met that were not known to be feasible
  std::int64_t in_bucket(const std::string& dimension, const std::string& bucket) const;  // cases; 0 where there is no such
  std::vector<std::string> missing() const;  // the feasible pairs that are not met, in words

  // {"cases", "pairs": {"met", "feasible"}, "buckets": {"<dimension>": {"<bucket>": cases, …}, …}}
  json::Value to_json() const;

 private:
  const std::vector<Dimension>& dimensions_;
  PairSet feasible_, met_;
  std::vector<std::vector<std::int64_t>> counts_;
  std::int64_t cases_ = 0;
};

}  // namespace dcpcheck
