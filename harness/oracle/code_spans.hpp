// What is admissible of one element as the codes themselves: for whoever keeps them, or compares elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/oracle/admissible.hpp"
#include "harness/oracle/judge.hpp"

namespace dcpcheck {

// Codes from `low` to `high` in the order of their values, -0 just before +0; of integers one number, `low` = `high`. As bit
// patterns, the element's low bytes.
struct CodeSpan {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const CodeSpan&, const CodeSpan&) = default;
};

struct AdmissibleCodes {
  std::vector<CodeSpan> spans;  // ascending, with a gap between each two
  bool nan = false;             // and any NaN
};

// The codes that judge_element() admits of element `index`; `how` and `scale` as there. Float types, or whatever is exact.
AdmissibleCodes admissible_spans(const Admissible& expected, std::int64_t index, const Comparison& how, float scale);

// The NaN that stands for all of `dtype`: bf16 0x7FC0, fp32 0x7FC00000, e4m3 0x7F.
std::uint64_t nan_code(DType dtype);

}  // namespace dcpcheck
