#include "kernels/math.cuh"

#include <gtest/gtest.h>

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
