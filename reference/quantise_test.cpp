#include "reference/quantise.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace dcpcheck::reference {
namespace {

using ::testing::ElementsAre;

Row row_of(const std::vector<Interval>& elements) {
  Row row;
  row.reset(static_cast<std::int64_t>(elements.size()));
  for (std::size_t i = 0; i < elements.size(); ++i) row.set(static_cast<std::int64_t>(i), elements[i]);
  return row;
}

// All values of the one scale of `row`, the main one first.
std::vector<Interval> scales_of(const Row& row, ScaleRule rule, bool full = false) {
  Row out;
  tile_scales(row, row.columns(), rule, {0, full}, out);
  EXPECT_EQ(out.columns(), 1);
  std::vector<Interval> all{out.at(0)};
  for (const Other& other : out.others) all.push_back(other.interval);
  return all;
}
std::vector<double> powers_of(const Row& row, ScaleRule rule, bool full = false) {
  std::vector<double> values;
  for (const Interval& scale : scales_of(row, rule, full)) {
    EXPECT_EQ(scale.error, 0);
    values.push_back(scale.value);
  }
  return values;
}

TEST(Powers, StepUpJustAboveTheCriticalMagnitude) {
  for (const ScaleRule rule : {ScaleRule::ue8m0, ScaleRule::pow2}) {
    for (int e = -2; e < 100; ++e) {
      const double critical = std::ldexp(1.75, e);
      EXPECT_THAT(powers_of(row_of({{1e-3, 0}, {critical, 0}}), rule), ElementsAre(std::ldexp(1, e - 8)));
      EXPECT_THAT(powers_of(row_of({{-critical, 0}}), rule), ElementsAre(std::ldexp(1, e - 8)));
      EXPECT_THAT(powers_of(row_of({{std::nextafter(static_cast<float>(critical), 1e38F), 0}}), rule),
                  ElementsAre(std::ldexp(1, e - 7)));
      EXPECT_THAT(powers_of(row_of({{std::nextafter(static_cast<float>(critical), 0.0F), 0}}), rule),
                  ElementsAre(std::ldexp(1, e - 8)));
    }
  }
}

TEST(Powers, BothWhereTheIntervalHoldsTheCriticalMagnitude) {
  EXPECT_THAT(powers_of(row_of({{1.7501, 2e-4}}), ScaleRule::ue8m0), ElementsAre(0x1p-7, 0x1p-8));
  EXPECT_THAT(powers_of(row_of({{1.7499, 2e-4}}), ScaleRule::ue8m0), ElementsAre(0x1p-8, 0x1p-7));
  EXPECT_THAT(powers_of(row_of({{1.7499, 0.9e-4}}), ScaleRule::ue8m0), ElementsAre(0x1p-8));
  // Another element is larger for certain.
  EXPECT_THAT(powers_of(row_of({{1.7499, 2e-4}, {1.76, 1e-4}}), ScaleRule::ue8m0), ElementsAre(0x1p-7));
}

TEST(Powers, FullDivisionBlursThem) {
  const double above = 1.75 * (1 + 0x1p-23);
  EXPECT_THAT(powers_of(row_of({{above, 0}}), ScaleRule::ue8m0, false), ElementsAre(0x1p-7));
  EXPECT_THAT(powers_of(row_of({{above, 0}}), ScaleRule::ue8m0, true), ElementsAre(0x1p-7, 0x1p-8));
  EXPECT_THAT(powers_of(row_of({{1.75, 0}}), ScaleRule::ue8m0, true), ElementsAre(0x1p-8, 0x1p-7));
  EXPECT_THAT(powers_of(row_of({{1.7501, 0}}), ScaleRule::ue8m0, true), ElementsAre(0x1p-7));
}

TEST(Powers, FloorsDifferByRule) {
  EXPECT_THAT(powers_of(row_of({{0, 0}}), ScaleRule::ue8m0), ElementsAre(0x1p-22));
  EXPECT_THAT(powers_of(row_of({{0, 0}}), ScaleRule::pow2), ElementsAre(0x1p-13));
  EXPECT_THAT(powers_of(row_of({{1e-30, 1e-36}}), ScaleRule::ue8m0), ElementsAre(0x1p-22));
  EXPECT_THAT(powers_of(row_of({{0.01, 1e-9}}), ScaleRule::ue8m0), ElementsAre(0x1p-15));
  EXPECT_THAT(powers_of(row_of({{0.01, 1e-9}}), ScaleRule::pow2), ElementsAre(0x1p-13));
}

TEST(Fp32, OneRoundingOfAnExactMagnitude) {
  const auto divided = scales_of(row_of({{3, 0}, {-5, 0}}), ScaleRule::fp32_div);
  ASSERT_EQ(divided.size(), 1U);
  EXPECT_EQ(divided[0].error, 0);
  EXPECT_EQ(static_cast<float>(divided[0].value), 5.0F / 448.0F);
  // A product of another rounding: 1 ulp off for many a magnitude, and told apart.
  int different = 0;
  for (int i = 129; i < 256; ++i) {
    const auto product = scales_of(row_of({{static_cast<double>(i), 0}}), ScaleRule::fp32_mul);
    const auto scale = static_cast<float>(product[0].value);
    EXPECT_EQ(product[0].error, 0);
    EXPECT_EQ(scale, static_cast<float>(i) * (1.0F / 448.0F));
    different += scale == static_cast<float>(i) / 448.0F ? 0 : 1;
  }
  EXPECT_GT(different, 20);
}

TEST(Fp32, IntervalsAndFloor) {
  const auto scale = scales_of(row_of({{448, 1e-3}, {447.9995, 1e-3}, {1, 0.1}}), ScaleRule::fp32_div);
  ASSERT_EQ(scale.size(), 1U);
  EXPECT_NEAR(scale[0].value - scale[0].error, 447.999 / 448, 1e-12);
  EXPECT_NEAR(scale[0].value + scale[0].error, 448.001 / 448, 1e-12);
  const auto zero = scales_of(row_of({{0, 0}, {0, 0}}), ScaleRule::fp32_div);
  EXPECT_EQ(zero[0].value, 0x1p-126);
  EXPECT_EQ(zero[0].error, 0);
  const auto full = scales_of(row_of({{448, 0}}), ScaleRule::fp32_div, true);
  EXPECT_NEAR(full[0].error, 0x1p-22, 1e-9);
}

TEST(Fp32, SetsOfIntermediatesStayApart) {
  Row row = row_of({{2, 0}, {1.5, 0}});
  row.others = {{0, {1, 0}}};
  const auto scales = scales_of(row, ScaleRule::fp32_div);
  ASSERT_EQ(scales.size(), 2U);
  EXPECT_EQ(scales[0].value, 2.0 / 448);
  EXPECT_EQ(scales[1].value, 1.5 / 448);
}

TEST(AllRules, NanIsDroppedAndInfinityIsNot) {
  for (const ScaleRule rule : {ScaleRule::fp32_div, ScaleRule::fp32_mul, ScaleRule::pow2, ScaleRule::ue8m0}) {
    const auto plain = scales_of(row_of({{7, 0}, {1, 0}}), rule);
    const auto with_nan = scales_of(row_of({{7, 0}, {nan, 0}}), rule);
    EXPECT_EQ(plain[0].value, with_nan[0].value);
    EXPECT_EQ(scales_of(row_of({{nan, 0}}), rule)[0].value, scales_of(row_of({{0, 0}}), rule)[0].value);
    const auto infinite = scales_of(row_of({{7, 0}, {-infinity, 0}}), rule);
    ASSERT_EQ(infinite.size(), 1U);
    EXPECT_EQ(infinite[0].value, infinity);
    Row unbounded = row_of({{7, 0}, {0, 0}});
    unbounded.give_up(1);
    EXPECT_EQ(scales_of(unbounded, rule)[0].error, infinity);
  }
}

TEST(RoundToBf16, KeepsTheSetOfCodes) {
  const double boundary = 1 + 0x1p-8;
  Row row = row_of({{1.001, 1e-4}, {boundary, 1e-4}, {0, 10}, {nan, 0}, {-3, 0}});
  round_to_bf16(row);
  EXPECT_EQ(row.value[0], 1);
  EXPECT_EQ(row.error[0], 0);
  EXPECT_EQ(row.value[1], 1);
  ASSERT_EQ(row.others_of(1).size(), 1U);
  EXPECT_EQ(row.others_of(1)[0].interval.value, 1 + 0x1p-7);
  EXPECT_GE(row.error[2], 10);  // too many: their hull
  EXPECT_TRUE(std::isnan(row.value[3]));
  EXPECT_EQ(row.value[4], -3);
}

}  // namespace
}  // namespace dcpcheck::reference
