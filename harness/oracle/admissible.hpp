// What a reference says of an output: which values a right kernel may have there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/core/inputs.hpp"
#include "harness/core/plan.hpp"

namespace dcpcheck {

// A further interval for one element, where the contract rounds in the middle and both neighbours are right.
struct Alternative {
  std::int64_t element = 0;  // row * columns + column
  double value = 0, error = 0;
};

// The admissible values of one output, or of one field of a cache's records: rows x columns.
// Rows are tokens for outputs by row and for caches (row t: the record of token t, whoever owns it), else axis 0.
//
// exact: the encoded elements, to be met byte for byte (any NaN for a NaN).
// Otherwise value v and error e in fp64: the kernel's last fp32 value before its one narrowing lies in [v-e, v+e]; a
// NaN v means a NaN, an infinite v that infinity. For codes divided by a scale (Field::scaled_by), v is the value
// before the division: the judge divides by the scale that the kernel stored.
struct Admissible {
  std::int64_t rows = 0, columns = 0;
  bool exact = false;
  Bytes codes;
  std::vector<double> value, error;
  std::vector<Alternative> alternatives;  // sorted by element
  std::vector<bool> rows_known;           // rows that are worked out, the others say nothing; empty: all are

  bool knows(std::int64_t row) const { return rows_known.empty() || rows_known[static_cast<std::size_t>(row)]; }
};

// By "<tensor>" for outputs and "<tensor>.<field>" for caches.
using Expected = std::map<std::string, Admissible, std::less<>>;

struct ReferenceOptions {
  int threads = 1;
  // How the kernel sums a row, where that is known: in `lanes` running sums, one for every lanes-th element, and a binary
  // tree over them; or otherwise, if none of n elements meets more than ceil(n / lanes) - 1 + ceil(log2 lanes) additions.
  // Of attention it is said of all its sums: of a score, over the query's elements, and of the weights and of an output,
  // over the keys; and that the weights are taken against one maximum over all keys, so that nothing is rescaled.
  // 0: in any order, keys in any tiles. It only makes the bound e smaller.
  int lanes = 0;
  // Outputs by row, where there are more: only so many rows, spread evenly, the first and last among them, are worked out
  // (Admissible::rows_known). 0: all.
  std::int64_t sample = 0;
};

// reference/<op>.cpp has one: the whole of what is admissible on `rank` (any rank where !op.rank_reference).
using Reference = std::function<Expected(const Plan&, const Inputs&, std::int64_t rank, const ReferenceOptions&)>;

}  // namespace dcpcheck
