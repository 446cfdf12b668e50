// fp64 to a narrow code in one rounding (nearest, ties to even), independent of the codecs that kernels use; and codes
// in the order of their values.
#pragma once

#include <cstdint>
#include <string>

#include "harness/core/dtype.hpp"

namespace dcpcheck {

// What becomes of a value past the largest e4m3 (contract e4m3_overflow), and of a NaN (contract nan).
struct E4m3Policy {
  bool saturate = true;    // past 448: ±448; false: NaN past 464
  bool clamp_nan = false;  // a NaN becomes ±448 (a min/max clamp ate it); false: 0x7F / 0xFF
};

std::uint16_t narrow_bf16(double value);
std::uint8_t narrow_e4m3(double value, E4m3Policy policy);
float narrow_fp32(double value);  // the host's own conversion, which is RN

double widen_bf16(std::uint16_t code);
double widen_e4m3(std::uint8_t code);

// A number that grows with the value of the code and is 0 for both zeros; codes must not be NaN.
std::int32_t order_bf16(std::uint16_t code);
std::int32_t order_e4m3(std::uint8_t code);
std::int64_t order_fp32(float value);

}  // namespace dcpcheck
