// How sure a greedy choice is: what right kernels may do to the logits, against the distance between the two best.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "harness/core/tokens.hpp"
#include "harness/oracle/taint.hpp"

namespace dcpcheck {

// A row of the outputs "out" [rows, heads * width] and "lse" [rows, heads] of an attention or merge launch, as its reference
// has them: heads [head, head + heads) of it.
struct JudgedRow {
  const Expected* expected = nullptr;
  const Taint* taint = nullptr;
  std::int64_t row = 0, head = 0;
};

// heads * width outputs, and what two right runs may each be off by.
struct ExactOutputs {
  std::vector<double> value, error;
};

// What a query's attention comes to over all its keys, where launches worked it out in `parts` (each over some of the keys)
// that `merges` put together. Nothing where some of it is not known: tainted, left out, or past fp32's range.
std::optional<ExactOutputs> exact_outputs(std::span<const JudgedRow> parts, std::span<const JudgedRow> merges,
                                          std::int64_t heads, std::int64_t width);

// The choice between the best token id and the one that comes nearest to it, by `table` [ids, outputs], fp32: margin and
// bound of the step. The nearest is the one whose margin is the least multiple of its bound.
TokenStep choice(const ExactOutputs& outputs, std::span<const float> table);

}  // namespace dcpcheck
