// e4m3 (the "fn" variety): 1 sign bit, 4 exponent bits of bias 7, 3 mantissa bits; no infinities, 0x7F and 0xFF are NaN,
// 448 is the largest. Source: "FP8 Formats for Deep Learning" (arXiv 2209.05433), table 1. Integer code only.
#pragma once

#include <cstdint>

#include "harness/core/bf16.hpp"
#include "harness/core/host_device.hpp"

namespace dcpcheck {

inline constexpr std::uint8_t e4m3_nan = 0x7F;  // stored for any NaN; its sign is dropped
inline constexpr std::uint8_t e4m3_max = 0x7E;  // 448

// The e4m3 nearest to `value`, ties to even; -0 and what rounds to it give 0x80.
// Up to 464, which lies half way to a 480 that there is not: ±448. Past it, and for infinities: ±448 where `saturate`,
// else e4m3_nan.
// NaN: e4m3_nan. Where `clamp_nan`, +448 whatever the NaN's sign, as fmaxf(fminf(x, 448), -448) has it: the inner call
// drops the NaN. (The clamp written the other way round would give -448.)
DCPCHECK_HD constexpr std::uint8_t encode_e4m3(float value, bool saturate = true, bool clamp_nan = false) {
  const std::uint32_t bits = float_bits(value);
  const std::uint32_t sign = (bits >> 24) & 0x80u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return clamp_nan ? e4m3_max : e4m3_nan;
  if (magnitude > 0x43E80000u) return saturate ? static_cast<std::uint8_t>(sign | e4m3_max) : e4m3_nan;  // 464
  const std::uint32_t exponent = magnitude >> 23;
  std::uint32_t code = 0;
  if (exponent >= 127 - 6) {  // normal: change the bias, then round 20 mantissa bits away as in encode_bf16
    const std::uint32_t rebiased = magnitude - (120u << 23);
    code = (rebiased + 0x7FFFFu + ((rebiased >> 20) & 1u)) >> 20;
    if (code > e4m3_max) code = e4m3_max;
  } else if (exponent >= 117) {  // 2^-10 and more: a multiple of 2^-9 to be. An fp32 is mantissa * 2^(exponent - 150).
    const std::uint32_t mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
    const std::uint32_t shift = 141u - exponent;  // 21 to 24
    code = (mantissa + (1u << (shift - 1)) - 1u + ((mantissa >> shift) & 1u)) >> shift;
  }
  return static_cast<std::uint8_t>(sign | code);
}

// The value of an e4m3, exactly; both NaNs give the fp32 0x7FC00000.
DCPCHECK_HD constexpr float decode_e4m3(std::uint8_t code) {
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x80u) << 24;
  const std::uint32_t magnitude = code & 0x7Fu;
  if (magnitude == 0x7Fu) return float_of_bits(0x7FC00000u);
  if (magnitude >= 8) return float_of_bits(sign | ((magnitude << 20) + (120u << 23)));
  if (magnitude == 0) return float_of_bits(sign);
  const std::uint32_t top = magnitude >= 4 ? 2u : magnitude >= 2 ? 1u : 0u;  // subnormal: magnitude * 2^-9, normalised
  return float_of_bits(sign | ((top + 118u) << 23) | ((magnitude << (23u - top)) & 0x7FFFFFu));
}

}  // namespace dcpcheck
