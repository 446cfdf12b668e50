// Narrowing against a search for the nearest value among all of a format's, with exact midpoints.
#include "harness/oracle/narrow.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace dcpcheck {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double not_a_number = std::numeric_limits<double>::quiet_NaN();

// All finite magnitudes of a format, by code; the next place past the last one stands for overflow.
std::vector<double> magnitudes(int codes, int mantissa, int bias) {
  std::vector<double> values;
  for (int code = 0; code <= codes; ++code) {
    const int exponent = code >> mantissa, fraction = code & ((1 << mantissa) - 1);
    values.push_back(exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa)
                                   : std::ldexp((1 << mantissa) + fraction, exponent - bias - mantissa));
  }
  return values;
}

const std::vector<double>& bf16_magnitudes() {
  static const std::vector<double> values = magnitudes(0x7F80, 7, 127);
  return values;
}
const std::vector<double>& e4m3_magnitudes() {
  static const std::vector<double> values = magnitudes(0x7F, 3, 7);
  return values;
}

// The place of the nearest of `values` to `magnitude`, the even one of two as near. Midpoints of neighbours are exact.
int nearest_place(const std::vector<double>& values, double magnitude) {
  const auto above = std::lower_bound(values.begin(), values.end(), magnitude);
  if (above == values.end()) return static_cast<int>(values.size()) - 1;
  const int high = static_cast<int>(above - values.begin());
  if (high == 0 || *above == magnitude) return high;
  const double middle = (values[static_cast<std::size_t>(high) - 1] + *above) / 2;
  if (magnitude != middle) return magnitude < middle ? high - 1 : high;
  return high % 2 == 0 ? high : high - 1;
}

void expect_bf16(double value) {
  const int place = nearest_place(bf16_magnitudes(), std::abs(value));
  ASSERT_EQ(narrow_bf16(value), (std::signbit(value) ? 0x8000 : 0) | place) << std::hexfloat << value;
}

void expect_e4m3(double value) {
  const int place = nearest_place(e4m3_magnitudes(), std::abs(value));
  const int sign = std::signbit(value) ? 0x80 : 0;
  ASSERT_EQ(narrow_e4m3(value, {true, false}), sign | std::min(place, 0x7E)) << std::hexfloat << value;
  ASSERT_EQ(narrow_e4m3(value, {false, false}), sign | place) << std::hexfloat << value;  // 0x7F is NaN
}

// Every value of the format, every midpoint, and one double to either side of each.
template <class Expect>
void check_all(const std::vector<double>& values, Expect expect) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double middle = i == 0 ? 0 : (values[i] + values[i - 1]) / 2;
    for (const double centre : {values[i], middle}) {
      for (const double value : {centre, std::nextafter(centre, inf), std::nextafter(centre, -inf)}) {
        expect(value);
        expect(-value);
      }
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Narrow, Bf16EveryCodeAndMidpoint) { check_all(bf16_magnitudes(), expect_bf16); }

TEST(Narrow, E4m3EveryCodeAndMidpoint) { check_all(e4m3_magnitudes(), expect_e4m3); }

TEST(Narrow, RandomDoubles) {
  std::mt19937_64 bits(1);
  for (int i = 0; i < 200000; ++i) {
    const auto value = std::bit_cast<double>(bits());
    if (std::isnan(value)) continue;
    expect_bf16(value);
    expect_e4m3(value);
    const double near =
        std::ldexp(std::bit_cast<double>((bits() >> 12) | (std::uint64_t{1023} << 52)), static_cast<int>(bits() % 24) - 14);
    expect_bf16(near);
    expect_e4m3(-near);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Narrow, NoRoundingThroughFp32) {
  // Just above a bf16 midpoint by less than fp32 can say: two roundings would tie to even, downwards.
  EXPECT_EQ(narrow_bf16(1 + 0x1p-8 + 0x1p-40), 0x3F81);
  EXPECT_EQ(narrow_bf16(1 + 0x1p-8), 0x3F80);
  // ... and an e4m3 tie that a rounding to bf16 or fp32 on the way would have moved.
  EXPECT_EQ(narrow_e4m3(0x1p-10, {}), 0x00);
  EXPECT_EQ(narrow_e4m3(0x1p-10 + 0x1p-60, {}), 0x01);
}

TEST(Narrow, Bf16Specials) {
  EXPECT_EQ(narrow_bf16(0.0), 0x0000);
  EXPECT_EQ(narrow_bf16(-0.0), 0x8000);
  EXPECT_EQ(narrow_bf16(inf), 0x7F80);
  EXPECT_EQ(narrow_bf16(-inf), 0xFF80);
  EXPECT_EQ(narrow_bf16(1e300), 0x7F80);
  EXPECT_EQ(narrow_bf16(5e-324), 0x0000);
  EXPECT_EQ(narrow_bf16(-5e-324), 0x8000);
  EXPECT_EQ(narrow_bf16(not_a_number) & 0x7FFF, 0x7FC0);
}

TEST(Narrow, E4m3PastTheRange) {
  const E4m3Policy saturate{true, false}, nan{false, false}, clamp{true, true};
  EXPECT_EQ(narrow_e4m3(464, saturate), 0x7E);
  EXPECT_EQ(narrow_e4m3(464, nan), 0x7E);
  const double past = std::nextafter(464.0, inf);
  EXPECT_EQ(narrow_e4m3(past, saturate), 0x7E);
  EXPECT_EQ(narrow_e4m3(past, nan), 0x7F);
  EXPECT_EQ(narrow_e4m3(-past, nan), 0xFF);
  EXPECT_EQ(narrow_e4m3(inf, saturate), 0x7E);
  EXPECT_EQ(narrow_e4m3(-inf, saturate), 0xFE);
  EXPECT_EQ(narrow_e4m3(-inf, nan), 0xFF);
  EXPECT_EQ(narrow_e4m3(not_a_number, saturate) & 0x7F, 0x7F);
  EXPECT_EQ(narrow_e4m3(not_a_number, clamp) & 0x7F, 0x7E);
  EXPECT_EQ(narrow_e4m3(-0.0, saturate), 0x80);
}

TEST(Narrow, WideningAndOrder) {
  for (int code = 0; code < 0x7F80; ++code) {
    const auto narrow = static_cast<std::uint16_t>(code);
    ASSERT_EQ(widen_bf16(narrow), bf16_magnitudes()[static_cast<std::size_t>(code)]);
    ASSERT_EQ(order_bf16(narrow), code);
    ASSERT_EQ(order_bf16(static_cast<std::uint16_t>(code | 0x8000)), -code);
  }
  for (int code = 0; code < 0x7F; ++code) {
    const auto narrow = static_cast<std::uint8_t>(code);
    ASSERT_EQ(widen_e4m3(narrow), e4m3_magnitudes()[static_cast<std::size_t>(code)]);
    ASSERT_EQ(order_e4m3(static_cast<std::uint8_t>(code | 0x80)), -code);
  }
  EXPECT_TRUE(std::isnan(widen_e4m3(0x7F)));
  EXPECT_TRUE(std::isnan(widen_e4m3(0xFF)));
  EXPECT_TRUE(std::isnan(widen_bf16(0x7FC0)));
  EXPECT_EQ(order_fp32(0.0F), order_fp32(-0.0F));
  EXPECT_LT(order_fp32(-1.0F), order_fp32(-0.5F));
  EXPECT_EQ(order_fp32(std::nextafter(1.0F, 2.0F)) - order_fp32(1.0F), 1);
}

}  // namespace
}  // namespace dcpcheck
