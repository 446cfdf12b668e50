// UE8M0 scales: powers of two, chosen by exact integer rules rather than by a logarithm, which is off by one just where
// it matters (frexp at every amax of 1.75 * 2^e, ceil(log2f) within a few ulp above).
#pragma once

#include <cstdint>

#include "harness/core/bf16.hpp"
#include "harness/core/host_device.hpp"

namespace dcpcheck {

// A positive fp32 as 2^exponent * (1 + mantissa * 2^-23), 0 <= mantissa < 2^23, subnormals too. Infinity and NaN have
// exponent 128; for 0 the exponent is -150.
struct Normalised {
  std::int32_t exponent = 0;
  std::uint32_t mantissa = 0;
};

DCPCHECK_HD constexpr Normalised normalise(float value) {
  const std::uint32_t magnitude = float_bits(value) & 0x7FFFFFFFu;
  if (magnitude == 0) return {-150, 0};
  if (magnitude >= 0x800000u) return {static_cast<std::int32_t>(magnitude >> 23) - 127, magnitude & 0x7FFFFFu};
  std::int32_t exponent = -126;
  std::uint32_t mantissa = magnitude;
  while (mantissa < 0x800000u) {
    mantissa <<= 1;
    --exponent;
  }
  return {exponent, mantissa & 0x7FFFFFu};
}

// ceil(log2(value)), exactly, for value > 0 and finite.
DCPCHECK_HD constexpr std::int32_t ceil_log2(float value) {
  const Normalised parts = normalise(value);
  return parts.exponent + (parts.mantissa > 0 ? 1 : 0);
}

// The least k with amax <= 448 * 2^k, which is ceil(log2(amax / 448)) with no rounding in between, for amax > 0 and
// finite: 448 = 1.75 * 2^8, and 0x600000 is the mantissa of 1.75.
DCPCHECK_HD constexpr std::int32_t e8m0_exponent(float amax) {
  const Normalised parts = normalise(amax);
  return parts.exponent - 8 + (parts.mantissa > 0x600000u ? 1 : 0);
}

// 2^k: exact for -149 <= k <= 127, below that 0, above it infinity.
DCPCHECK_HD constexpr float power_of_two(std::int32_t k) {
  if (k > 127) return float_of_bits(0x7F800000u);
  if (k >= -126) return float_of_bits(static_cast<std::uint32_t>(k + 127) << 23);
  if (k >= -149) return float_of_bits(1u << (k + 149));
  return 0.0f;
}

}  // namespace dcpcheck
