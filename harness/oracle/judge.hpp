// Compares one field's elements with what is admissible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "harness/oracle/admissible.hpp"
#include "harness/oracle/narrow.hpp"

namespace dcpcheck {

// How codes are compared: from the case's contract.
struct Comparison {
  DType dtype = DType::bf16;
  E4m3Policy e4m3;
  bool full_division = false;  // codes against a stored scale: a division of up to 2 ulp (contract division: full)
};

struct ElementJudgement {
  bool admitted = true;
  // How much of the bound the element needs: 0 where it is the reference's own nearest code, over 1 where it is not
  // admitted, infinite where there is no bound to speak of.
  double fraction = 0;
};

// Judges element `index` (row * columns + column) of `expected` against the encoded element at `code` (size_of(dtype)
// bytes). `scale`: the scale the kernel stored for it, or 1; a scale that is NaN or 0 divides as IEEE does.
ElementJudgement judge_element(const Admissible& expected, std::int64_t index, const std::byte* code, const Comparison& how,
                               float scale);

// One run of elements: columns [0, columns) of `row`, at `codes` (dense). For each inadmissible one calls
// report(column, fraction). Returns the worst fraction of the admitted ones and its column (-1: all were exact hits).
struct RowJudgement {
  double worst = 0;
  std::int64_t column = -1;
};
RowJudgement judge_row(const Admissible& expected, std::int64_t row, const std::byte* codes, const Comparison& how,
                       std::span<const float> scales, std::int64_t tile,
                       const std::function<void(std::int64_t column, double fraction)>& report);

// What would have been admissible, for a person: "0x3F80 (1)", "0x3F80..0x3F81 (1..1.0078)", "NaN".
std::string describe_admissible(const Admissible& expected, std::int64_t index, const Comparison& how, float scale);
// What was there: "0x3F80 (1)".
std::string describe_code(const std::byte* code, DType dtype);

}  // namespace dcpcheck
