#include "kernels/math.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kernels {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Quantise, GivesTheCodesOfTheCodec) {
  for (const bool saturate : {true, false}) {
    for (const bool clamp_nan : {true, false}) {
      const Quantise quantise(saturate, clamp_nan);
      const auto check = [&](std::uint32_t bits) {
        const float value = dcpcheck::float_of_bits(bits);
        ASSERT_EQ(quantise(value), dcpcheck::encode_e4m3(value, saturate, clamp_nan)) << std::hex << bits;
      };
      // An odd stride reaches every exponent and, over them, all kinds of mantissas …
      for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 1021) check(static_cast<std::uint32_t>(bits));
      // … and every tie and boundary between two codes has its neighbours.
      for (std::uint64_t high = 0; high < (std::uint64_t{1} << 32); high += std::uint64_t{1} << 16) {
        const auto bits = static_cast<std::uint32_t>(high);
        for (const std::uint32_t near : {bits - 1, bits, bits + 1}) check(near);
      }
    }
  }
}

TEST(Quantise, FollowsTheContractPastTheRange) {
  EXPECT_EQ(Quantise(true, false)(464.0F), 0x7E);
  EXPECT_EQ(Quantise(true, false)(-465.0F), 0xFE);
  EXPECT_EQ(Quantise(true, false)(kInf), 0x7E);
  EXPECT_EQ(Quantise(false, false)(464.0F), 0x7E);
  EXPECT_EQ(Quantise(false, false)(std::nextafter(464.0F, 500.0F)), 0x7F);
  EXPECT_EQ(Quantise(true, false)(kNaN), 0x7F);
  EXPECT_EQ(Quantise(true, true)(kNaN), 0x7E);
  EXPECT_EQ(Quantise(true, false)(-0.0F), 0x80);
  EXPECT_EQ(Quantise(true, false)(0x1p-10F), 0x00);
  EXPECT_EQ(Quantise(true, false)(0x1.000002p-10F), 0x01);
}

TEST(Math, RoundIfRoundsOnlyWhereWanted) {
  const float value = 1.00390649F;  // one fp32 step above the tie between two bf16
  EXPECT_EQ(round_bf16_if(true, value), 1.0078125F);
  EXPECT_EQ(round_bf16_if(false, value), value);
  EXPECT_TRUE(std::isnan(round_bf16_if(true, kNaN)));
  EXPECT_TRUE(std::isnan(round_bf16_if(false, kNaN)));
}

TEST(Math, StoresOneNaN) {
  std::uint16_t code = 0;
  for (const std::uint32_t bits : {0x7FC00000U, 0xFFC00000U, 0x7F800001U, 0xFFFFFFFFU}) {
    store_bf16(&code, dcpcheck::float_of_bits(bits));
    EXPECT_EQ(code, 0x7FC0);
  }
}

TEST(Math, RsqrtIsWithinAnUlp) {
  for (float value = 1e-30F; value < 1e30F; value *= 1.37F) {
    const double exact = 1 / std::sqrt(static_cast<double>(value));
    EXPECT_NEAR(static_cast<double>(rsqrt(value)), exact, exact * 0x1p-24 * 1.001);
  }
  EXPECT_EQ(rsqrt(0.0F), kInf);
  EXPECT_EQ(rsqrt(kInf), 0.0F);
}

TEST(Math, LargerDropsANaNOnItsLeft) {
  EXPECT_EQ(larger(kNaN, 1.0F), 1.0F);
  EXPECT_EQ(larger(2.0F, 1.0F), 2.0F);
  EXPECT_EQ(larger(0.5F, 1.0F), 1.0F);
}

TEST(Math, NextPow2) {
  EXPECT_EQ(next_pow2(1.0F), 1.0F);
  EXPECT_EQ(next_pow2(std::nextafter(1.0F, 2.0F)), 2.0F);
  EXPECT_EQ(next_pow2(0.75F), 1.0F);
  EXPECT_EQ(next_pow2(1e-4F), 0x1p-13F);
  EXPECT_EQ(next_pow2(kInf), kInf);
}

// How far `got` is from `right` in units in the last place of fp32 there.
double ulps(float got, double right) {
  int exponent = 0;
  std::frexp(right, &exponent);
  return std::abs(static_cast<double>(got) - right) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

// Calls f for floats of all exponents and signs, NaNs among them: every 509th.
template <class F>
void for_floats(F f) {
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 509)
    f(dcpcheck::float_of_bits(static_cast<std::uint32_t>(bits)));
}

TEST(Math, Exp2IsWithin12TenthsOfAnUlp) {
  double worst = 0, worst_subnormal = 0;
  for_floats([&](float value) {
    const float got = exp2(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(got));
    } else if (value >= 128.0F || value < -150.0F) {
      ASSERT_EQ(got, value > 0 ? kInf : 0.0F) << value;
    } else {
      const double right = std::exp2(static_cast<double>(value));
      double& most = right >= 0x1p-126 ? worst : worst_subnormal;
      most = std::max(most, ulps(got, right));
    }
  });
  EXPECT_LT(worst, 1.2);
  EXPECT_LT(worst_subnormal, 1.2);
  for (int k = -149; k < 128; ++k) EXPECT_EQ(exp2(static_cast<float>(k)), std::ldexp(1.0F, k));
  EXPECT_EQ(exp2(-kInf), 0.0F);
  EXPECT_EQ(exp2(kInf), kInf);
}

TEST(Math, ExpIsOffByItsArgumentAndExp2) {
  for_floats([](float value) {
    if (!(std::abs(value) < 80)) return;
    const double right = std::exp(static_cast<double>(value));
    const double bound = 0x1p-24 * (1.23 * static_cast<double>(std::abs(value)) + 2.4);
    ASSERT_LE(std::abs(static_cast<double>(exp(value)) / right - 1), bound) << value;
  });
  EXPECT_EQ(exp(0.0F), 1.0F);
  EXPECT_EQ(exp(-kInf), 0.0F);
  EXPECT_EQ(exp(-1e30F), 0.0F);
  EXPECT_TRUE(std::isnan(exp(kNaN)));
}

TEST(Math, LogarithmsAreRoundedOnce) {
  double worst = 0;
  for_floats([&](float value) {
    if (!(value > 0) || std::isinf(value) || value == 1) return;
    worst = std::max(worst, ulps(log2(value), std::log2(static_cast<double>(value))));
    worst = std::max(worst, ulps(log(value), std::log(static_cast<double>(value))));
  });
  EXPECT_LT(worst, 0.501);
  for (int k = -149; k < 128; ++k) EXPECT_EQ(log2(std::ldexp(1.0F, k)), static_cast<float>(k));
  EXPECT_EQ(log(1.0F), 0.0F);
  for (const auto function : {&log2, &log}) {
    EXPECT_EQ(function(0.0F), -kInf);
    EXPECT_EQ(function(kInf), kInf);
    EXPECT_TRUE(std::isnan(function(-1.0F)));
    EXPECT_TRUE(std::isnan(function(kNaN)));
  }
}

TEST(Math, RotateTurnsByTheAngle) {
  // (3, 4) by a quarter turn, and by cos 0.6, sin 0.8.
  const Pair quarter = rotate({3, 4}, 0, 1);
  EXPECT_EQ(quarter.first, -4);
  EXPECT_EQ(quarter.second, 3);
  const Pair other = rotate({3, 4}, 0.6F, 0.8F);
  EXPECT_NEAR(other.first, -1.4, 1e-6);
  EXPECT_NEAR(other.second, 4.8, 1e-6);
}

}  // namespace
}  // namespace kernels
