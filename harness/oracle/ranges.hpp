// Which codes an interval of fp32 values can become: what the judge's verdicts and its messages are made of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "harness/oracle/judge.hpp"

namespace dcpcheck {

// Codes low..high in the order of their values. Zeros have one place in it and two codes, each with a flag of its own
// that counts only where 0 lies in low..high.
struct CodeRange {
  std::int64_t low = 0, high = -1;  // low > high: none
  bool plus_zero = false, minus_zero = false;

  bool holds(std::int64_t order, bool negative) const {
    return low <= order && order <= high && (order != 0 || (negative ? minus_zero : plus_zero));
  }
};

// At most three ranges (a stored scale of 0 tears an interval around 0 apart), and NaN or not.
struct CodeSet {
  std::array<CodeRange, 3> ranges;
  int count = 0;
  bool nan = false;

  void add(const CodeRange& range) { ranges[static_cast<std::size_t>(count++)] = range; }
};

// The codes that a kernel may store whose last fp32 value lies in [value - error, value + error].
CodeSet admissible_codes(double value, double error, const Comparison& how, float scale);

// An encoded element of a float type, taken apart.
struct Decoded {
  bool nan = false, negative = false;
  std::int64_t order = 0;
};
Decoded decode(const std::byte* code, DType dtype);

// The value at `order` in a float type's code order; the place after the last finite one counts as the next step.
double value_at(std::int64_t order, DType dtype);

}  // namespace dcpcheck
