// The arithmetic of the kernels: only what IEEE 754 rounds correctly (+ - * / sqrt), one operation at a time, so that
// every machine gives the same bits. No fma and no other libm; NaNs become one code where they are stored.
#pragma once

#include <cmath>
#include <cstdint>

#include "harness/core/bf16.hpp"
#include "harness/core/e4m3.hpp"
#include "harness/core/e8m0.hpp"
#include "harness/core/host_device.hpp"

#ifdef __FAST_MATH__
#error "kernels/ must not be compiled with fast-math: its results are held to be the same on every machine"
#endif

namespace kernels {

inline constexpr float kE4m3Max = 448.0F;

// A bf16 in memory as fp32, and an fp32 to memory as bf16, rounded once.
DCPCHECK_HD inline float load_bf16(const std::uint16_t* at) { return dcpcheck::decode_bf16(*at); }
DCPCHECK_HD inline void store_bf16(std::uint16_t* at, float value) { *at = dcpcheck::encode_bf16(value); }

// An fp32 to memory. NaNs become one code there, as they do in the narrower types.
DCPCHECK_HD inline void store_fp32(float* at, float value) {
  *at = value == value ? value : dcpcheck::float_of_bits(0x7FC00000U);
}

// The value rounded to bf16, as where a kernel keeps an intermediate in that type.
DCPCHECK_HD inline float round_bf16(float value) { return dcpcheck::decode_bf16(dcpcheck::encode_bf16(value)); }

// condition ? yes : no. By masks: a loop over it has nothing to branch on.
DCPCHECK_HD inline float select(bool condition, float yes, float no) {
  const std::uint32_t mask = condition ? 0xFFFFFFFFU : 0U;
  return dcpcheck::float_of_bits((dcpcheck::float_bits(yes) & mask) | (dcpcheck::float_bits(no) & ~mask));
}

// The value rounded to bf16 where `wanted`, else as it is.
DCPCHECK_HD inline float round_bf16_if(bool wanted, float value) { return select(wanted, round_bf16(value), value); }

// 1 / sqrt(value), rounded from fp64. rsqrtf differs between machines; these two operations do not.
DCPCHECK_HD inline float rsqrt(float value) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(value))); }

// The larger of two; `b` where `a` is NaN.
DCPCHECK_HD inline float larger(float a, float b) { return a > b ? a : b; }

// |value|. By the sign bit: no branch, and the same for NaN everywhere.
DCPCHECK_HD inline float magnitude(float value) { return dcpcheck::float_of_bits(dcpcheck::float_bits(value) & 0x7FFFFFFFU); }

// The least power of two that is not under `value`, for value > 0; infinity for infinity.
DCPCHECK_HD inline float next_pow2(float value) { return dcpcheck::power_of_two(dcpcheck::ceil_log2(value)); }

// 2^value, within 1.2 ulp (math_test.cpp); exact for integers, 0 for -inf, NaN for NaN, and rounded once more
// where the result is subnormal. No branch, so that a loop over it becomes SIMD.
DCPCHECK_HD inline float exp2(float value) {
  // Past these ends the result is 0 or infinity all the same. A NaN compares false and stays.
  float x = select(value < -160.0F, -160.0F, value);
  x = select(x > 160.0F, 160.0F, x);
  // x = k + f, |f| <= 1/2: the sum is so large that its last place is 1, and its low bits are k.
  constexpr float kShift = 12582912.0F;  // 1.5 * 2^23
  const float shifted = x + kShift;
  const std::uint32_t k = dcpcheck::float_bits(shifted) - dcpcheck::float_bits(kShift);
  const float f = x - (shifted - kShift);
  // (2^f - 1) / f by a polynomial through the Chebyshev nodes of [-1/2, 1/2]; it adds 0.09 * 2^-24 to the error.
  float p = 0x1.44138ap-13F;
  p = p * f + 0x1.5f0890p-10F;
  p = p * f + 0x1.3b2a54p-7F;
  p = p * f + 0x1.c6af6cp-5F;
  p = p * f + 0x1.ebfbe0p-3F;
  p = p * f + 0x1.62e430p-1F;
  p = p * f + 1.0F;
  // 2^k in two factors, each of them normal: the first product is exact, the second rounds only where it is subnormal.
  const auto whole = static_cast<std::int32_t>(k);
  const std::int32_t half = whole >> 1;
  const auto power = [](std::int32_t e) { return dcpcheck::float_of_bits(static_cast<std::uint32_t>(e + 127) << 23); };
  return p * power(half) * power(whole - half);
}

// e^value as 2^(value log2 e): rounding the product and the constant moves the exponent by 1.23 u of itself, so that the
// result is off by 1.23 |value| u besides what exp2 is, u = 2^-24.
DCPCHECK_HD inline float exp(float value) { return exp2(value * 1.44269504F); }

// ln(value) for a finite value > 0, in fp64, whose + - * / are the same everywhere too; off by less than 2^-35 of itself.
DCPCHECK_HD inline double wide_log(float value) {
  // value = m 2^e with m in [sqrt(1/2), sqrt(2)). Subnormal values are normal in fp64.
  const std::uint64_t bits = __builtin_bit_cast(std::uint64_t, static_cast<double>(value));
  constexpr std::uint64_t kRootHalf = 0x3FE6A09E667F3BCDULL;
  const std::uint64_t above = bits - kRootHalf;
  const auto e = static_cast<std::int32_t>(static_cast<std::int64_t>(above) >> 52);
  const double m = __builtin_bit_cast(double, bits - (static_cast<std::uint64_t>(static_cast<std::int64_t>(e)) << 52));
  // ln m = 2 artanh(s) = 2 (s + s^3 / 3 + s^5 / 5 + ...), s = (m - 1) / (m + 1), s^2 <= 0.0295.
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double sum = 1.0 / 13.0;
  for (int n = 11; n > 0; n -= 2) sum = sum * z + 1.0 / n;
  return static_cast<double>(e) * 0.6931471805599453 + 2.0 * s * sum;
}

namespace detail {

// wide_log(value) * scale as fp32; what IEEE 754 has for a logarithm of 0, infinity, NaN and numbers below 0.
DCPCHECK_HD inline float scaled_log(float value, double scale) {
  const float infinity = dcpcheck::float_of_bits(0x7F800000U);
  if (value == 0.0F) return -infinity;
  if (!(value > 0.0F)) return dcpcheck::float_of_bits(0x7FC00000U);
  return value == infinity ? infinity : static_cast<float>(wide_log(value) * scale);
}

}  // namespace detail

// log2(value) and ln(value), each within 0.501 ulp; -inf for 0, NaN below it.
DCPCHECK_HD inline float log2(float value) { return detail::scaled_log(value, 1.4426950408889634); }
DCPCHECK_HD inline float log(float value) { return detail::scaled_log(value, 1.0); }

// Two elements that RoPE turns together.
struct Pair {
  float first, second;
};

DCPCHECK_HD inline Pair rotate(Pair x, float cos, float sin) {
  return {x.first * cos - x.second * sin, x.second * cos + x.first * sin};
}

// fp32 to e4m3, by a contract's rules for what is out of range. The same codes as dcpcheck::encode_e4m3, which
// math_test.cpp holds it to, from selections in place of branches, so that a loop over it becomes SIMD.
class Quantise {
 public:
  Quantise() = default;
  // Past 464: 448 where `saturate`, else NaN. A NaN: 448 where `clamp_nan`, else NaN.
  Quantise(bool saturate, bool clamp_nan)
      : over_(saturate ? dcpcheck::e4m3_max : dcpcheck::e4m3_nan),
        over_sign_(saturate ? 0x80 : 0),
        nan_(clamp_nan ? dcpcheck::e4m3_max : dcpcheck::e4m3_nan) {}

  DCPCHECK_HD std::uint8_t operator()(float value) const {
    // Signed, as baseline x86-64 compares no unsigned lanes; no value here has the top bit.
    const auto magnitude = static_cast<std::int32_t>(dcpcheck::float_bits(value) & 0x7FFFFFFFU);
    const auto sign = static_cast<std::int32_t>(dcpcheck::float_bits(value) >> 24 & 0x80U);
    // 2^-6 and more: change the bias, then round 20 mantissa bits away, ties to even.
    const std::int32_t rebiased = magnitude - (120 << 23);
    const std::int32_t normal = (rebiased + 0x7FFFF + (rebiased >> 20 & 1)) >> 20;
    // Less: a multiple of 2^-9, which is the last place of 2^14, so an addition rounds to it.
    constexpr float kTwo14 = 16384.0F;
    const auto subnormal = static_cast<std::int32_t>(
        dcpcheck::float_bits(dcpcheck::float_of_bits(static_cast<std::uint32_t>(magnitude)) + kTwo14) -
        dcpcheck::float_bits(kTwo14));
    std::int32_t code = select(magnitude < 121 << 23, subnormal, normal);
    code = sign | select(code > dcpcheck::e4m3_max, dcpcheck::e4m3_max, code);
    code = select(magnitude > 0x43E80000, (sign & over_sign_) | over_, code);  // 464
    code = select(magnitude > 0x7F800000, nan_, code);
    return static_cast<std::uint8_t>(code);
  }

 private:
  // By a mask: from ?: the optimiser makes branches again, as one condition implies another.
  static DCPCHECK_HD std::int32_t select(bool condition, std::int32_t yes, std::int32_t no) {
    const std::int32_t mask = -static_cast<std::int32_t>(condition);
    return (yes & mask) | (no & ~mask);
  }

  // Codes rather than flags: a loop then has nothing to branch on.
  std::int32_t over_ = dcpcheck::e4m3_max, over_sign_ = 0x80;
  std::int32_t nan_ = dcpcheck::e4m3_nan;
};

}  // namespace kernels
