// Rounding fp64 magnitudes to narrow formats, in integers only: inline, for narrow.cpp and the judge's inner loop.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace dcpcheck::rounding {

constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::uint64_t infinity_bits = std::uint64_t{0x7FF} << 52;

// A binary format with `mantissa` stored mantissa bits, the exponent bias `bias`, and subnormals.
struct Bf16Format {
  static constexpr int mantissa = 7, bias = 127;
  static constexpr std::uint32_t overflow = 0x7F80;  // the first code that stands for no finite value
};
struct E4m3Format {
  static constexpr int mantissa = 3, bias = 7;
  static constexpr std::uint32_t overflow = 0x7F;
};

// The code of the format's value nearest to the fp64 number with the bits `magnitude` (sign 0, not NaN), ties to the
// even code. Codes grow with values, so past the largest finite value the result is `overflow` or more.
template <class Format>
constexpr std::uint64_t nearest_code(std::uint64_t magnitude) {
  constexpr int shift = 52 - Format::mantissa;
  constexpr std::uint64_t rebias = std::uint64_t{1023 - Format::bias} << 52;
  constexpr std::uint64_t smallest_normal = rebias + (std::uint64_t{1} << 52);
  if (magnitude >= smallest_normal) [[likely]] {
    // Exponent and mantissa are one integer: a carry out of the mantissa goes where it should.
    const std::uint64_t code = magnitude - rebias;
    return (code + ((std::uint64_t{1} << (shift - 1)) - 1) + ((code >> shift) & 1)) >> shift;
  }
  // Below it the codes are equally spaced by 2^(1 - bias - mantissa).
  const int exponent = static_cast<int>(magnitude >> 52);
  const std::uint64_t fraction = magnitude & ((std::uint64_t{1} << 52) - 1);
  const std::uint64_t significand = exponent == 0 ? fraction : fraction | (std::uint64_t{1} << 52);
  // The value is significand * 2^(max(exponent, 1) - 1023 - 52): `drop` of its low bits lie under the spacing.
  const int drop = (1 - Format::bias - Format::mantissa) - ((exponent == 0 ? 1 : exponent) - 1023 - 52);
  if (drop > 54) return 0;  // under half of half the spacing
  return (significand + ((std::uint64_t{1} << (drop - 1)) - 1) + ((significand >> drop) & 1)) >> drop;
}

constexpr bool is_nan(std::uint64_t bits) { return (bits & ~sign_bit) > infinity_bits; }

inline std::uint16_t to_bf16(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 48 & 0x8000);
  if (is_nan(bits)) return sign | 0x7FC0;
  const std::uint64_t code = nearest_code<Bf16Format>(bits & ~sign_bit);
  return static_cast<std::uint16_t>(sign | (code < Bf16Format::overflow ? code : Bf16Format::overflow));
}

// The nearest e4m3 code with no regard to range: magnitudes that are past 448 once rounded give 0x7F. Not for NaN.
inline std::uint8_t to_e4m3_unlimited(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t code = nearest_code<E4m3Format>(bits & ~sign_bit);
  return static_cast<std::uint8_t>((bits >> 56 & 0x80) | (code < E4m3Format::overflow ? code : E4m3Format::overflow));
}

// x87-style excess precision is excluded by the 64-bit targets: this is one rounding to nearest.
inline float to_fp32(double value) { return static_cast<float>(value); }

}  // namespace dcpcheck::rounding
