// Merging parts of an attention output by their log-sum-exps, with what fp32 may do to the result.
#pragma once

#include <cstdint>
#include <span>

#include "reference/row.hpp"

namespace dcpcheck::reference {

// One part of a head's output, and its LSE. -inf, +inf and NaN: the part has no keys, and its output holds anything.
struct Part {
  double lse = 0;
  std::span<const double> out;
};

struct MergeContract {
  bool base_2 = false;                 // LSEs are logarithms to base 2, else to base e
  bool all_empty_unspecified = false;  // no part has keys: anything, else (0, -inf)
};

// Merges the parts of head `head` into columns head * width … of `out`, width being that of the parts, and column `head`
// of `lse`. Heads must come in their order.
void merge(std::span<const Part> parts, const MergeContract& contract, std::int64_t head, Row& out, Row& lse);

}  // namespace dcpcheck::reference
