#include "harness/oracle/narrow.hpp"

#include <bit>
#include <cmath>

#include "harness/oracle/rounding.hpp"

namespace dcpcheck {

std::uint16_t narrow_bf16(double value) { return rounding::to_bf16(value); }

std::uint8_t narrow_e4m3(double value, E4m3Policy policy) {
  const auto sign = static_cast<std::uint8_t>(std::signbit(value) ? 0x80 : 0);
  if (std::isnan(value)) return sign | (policy.clamp_nan ? 0x7E : 0x7F);
  const std::uint8_t code = rounding::to_e4m3_unlimited(value);
  return (code & 0x7F) == 0x7F && policy.saturate ? static_cast<std::uint8_t>(sign | 0x7E) : code;
}

float narrow_fp32(double value) { return rounding::to_fp32(value); }

double widen_bf16(std::uint16_t code) { return std::bit_cast<float>(std::uint32_t{code} << 16); }

double widen_e4m3(std::uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  if ((code & 0x7F) == 0x7F) return std::bit_cast<double>(std::uint64_t{0x7FF8} << 48);
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

std::int32_t order_bf16(std::uint16_t code) {
  const std::int32_t magnitude = code & 0x7FFF;
  return (code & 0x8000) != 0 ? -magnitude : magnitude;
}

std::int32_t order_e4m3(std::uint8_t code) {
  const std::int32_t magnitude = code & 0x7F;
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

std::int64_t order_fp32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::int64_t magnitude = bits & 0x7FFFFFFF;
  return (bits >> 31) != 0 ? -magnitude : magnitude;
}

}  // namespace dcpcheck
