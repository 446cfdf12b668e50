#include "harness/oracle/judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace dcpcheck {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double not_a_number = std::numeric_limits<double>::quiet_NaN();

Admissible one(double value, double error, std::vector<Alternative> alternatives = {}) {
  Admissible expected;
  expected.rows = expected.columns = 1;
  expected.value = {value};
  expected.error = {error};
  expected.alternatives = std::move(alternatives);
  return expected;
}

template <class Code>
ElementJudgement judge(const Admissible& expected, Code code, Comparison how, float scale = 1) {
  std::byte bytes[sizeof(Code)];
  std::memcpy(bytes, &code, sizeof code);
  return judge_element(expected, 0, bytes, how, scale);
}
ElementJudgement bf16(double value, double error, int code) {
  return judge(one(value, error), static_cast<std::uint16_t>(code), {DType::bf16, {}, false});
}
bool e4m3(double value, double error, int code, float scale = 1, E4m3Policy policy = {}, bool full = false) {
  return judge(one(value, error), static_cast<std::uint8_t>(code), {DType::e4m3, policy, full}, scale).admitted;
}
bool fp32(double value, double error, float number) {
  return judge(one(value, error), number, {DType::fp32, {}, false}).admitted;
}
// Which of the 256 e4m3 codes are admitted.
std::vector<int> e4m3_set(double value, double error, float scale, E4m3Policy policy = {}) {
  std::vector<int> codes;
  for (int code = 0; code < 256; ++code) {
    if (e4m3(value, error, code, scale, policy)) codes.push_back(code);
  }
  return codes;
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(JudgeBf16, OneCodeWhereTheIntervalHoldsNoBoundary) {
  EXPECT_TRUE(bf16(1.001, 1e-4, 0x3F80).admitted);
  EXPECT_EQ(bf16(1.001, 1e-4, 0x3F80).fraction, 0);
  EXPECT_FALSE(bf16(1.001, 1e-4, 0x3F81).admitted);
  EXPECT_FALSE(bf16(1.001, 1e-4, 0x3F7F).admitted);
  EXPECT_GT(bf16(1.001, 1e-4, 0x3F81).fraction, 1);
  EXPECT_FALSE(bf16(1.001, 1e-4, 0xBF80).admitted);
  EXPECT_FALSE(bf16(1.001, 1e-4, 0x7FC0).admitted);
}

TEST(JudgeBf16, TwoCodesAcrossABoundary) {
  const double boundary = 1 + 0x1p-8;  // between 0x3F80 and 0x3F81
  EXPECT_TRUE(bf16(boundary - 1e-5, 2e-5, 0x3F80).admitted);
  EXPECT_TRUE(bf16(boundary - 1e-5, 2e-5, 0x3F81).admitted);
  EXPECT_NEAR(bf16(boundary - 1e-5, 2e-5, 0x3F81).fraction, 0.5, 1e-6);
  EXPECT_FALSE(bf16(boundary - 1e-5, 0.9e-5, 0x3F81).admitted);
  EXPECT_NEAR(bf16(boundary - 1e-5, 0.9e-5, 0x3F81).fraction, 1 / 0.9, 1e-6);
  EXPECT_FALSE(bf16(boundary - 1e-5, 2e-5, 0x3F82).admitted);
  // An exact tie is the even code's alone.
  EXPECT_TRUE(bf16(boundary, 0, 0x3F80).admitted);
  EXPECT_FALSE(bf16(boundary, 0, 0x3F81).admitted);
}

TEST(JudgeBf16, Zeros) {
  for (const int zero : {0x0000, 0x8000}) {
    EXPECT_TRUE(bf16(0.0, 0, zero).admitted);
    EXPECT_TRUE(bf16(-0.0, 0, zero).admitted);
    EXPECT_EQ(bf16(-0.0, 0, zero).fraction, 0);
    EXPECT_TRUE(bf16(1e-45, 1e-44, zero).admitted);
  }
  EXPECT_FALSE(bf16(0, 0, 0x0001).admitted);
  // Strictly positive, but narrowed to zero.
  EXPECT_TRUE(bf16(1e-42, 1e-44, 0x0000).admitted);
  EXPECT_FALSE(bf16(1e-42, 1e-44, 0x8000).admitted);
  EXPECT_TRUE(bf16(-1e-42, 1e-44, 0x8000).admitted);
  EXPECT_FALSE(bf16(-1e-42, 1e-44, 0x0000).admitted);
}

TEST(JudgeBf16, NanAndInfinity) {
  for (const int nan : {0x7FC0, 0xFFC0, 0x7F81, 0xFFFF}) {
    EXPECT_TRUE(bf16(not_a_number, 0, nan).admitted);
    EXPECT_FALSE(bf16(1, 1e-3, nan).admitted);
    EXPECT_FALSE(bf16(inf, 0, nan).admitted);
  }
  EXPECT_FALSE(bf16(not_a_number, 0, 0x7F80).admitted);
  EXPECT_FALSE(bf16(not_a_number, 0, 0).admitted);
  EXPECT_TRUE(bf16(inf, 0, 0x7F80).admitted);
  EXPECT_TRUE(bf16(inf, inf, 0x7F80).admitted);
  EXPECT_FALSE(bf16(inf, 0, 0xFF80).admitted);
  EXPECT_FALSE(bf16(inf, 0, 0x7F7F).admitted);
  EXPECT_TRUE(bf16(1e39, 1e33, 0x7F80).admitted);
  // No bound to speak of: any number, but no NaN.
  EXPECT_TRUE(bf16(0, inf, 0x7F80).admitted);
  EXPECT_TRUE(bf16(0, inf, 0xC000).admitted);
  EXPECT_FALSE(bf16(0, inf, 0x7FC0).admitted);
}

TEST(JudgeBf16, Alternatives) {
  const Admissible expected = one(1, 0, {{0, 2, 0}, {0, not_a_number, 0}});
  const Comparison how{DType::bf16, {}, false};
  for (const int code : {0x3F80, 0x4000, 0x7FC0}) {
    const ElementJudgement judged = judge(expected, static_cast<std::uint16_t>(code), how);
    EXPECT_TRUE(judged.admitted);
    EXPECT_EQ(judged.fraction, 0);
  }
  // No widened interval: what lies between them is not right.
  EXPECT_FALSE(judge(expected, std::uint16_t{0x3FC0}, how).admitted);
  EXPECT_EQ(describe_admissible(expected, 0, how, 1), "0x3F80 (1) or 0x4000 (2) or NaN");
}

TEST(JudgeE4m3, AgainstTheStoredScale) {
  EXPECT_THAT(e4m3_set(2, 0, 2), ElementsAre(0x38));
  EXPECT_THAT(e4m3_set(-2, 0, 2), ElementsAre(0xB8));
  EXPECT_THAT(e4m3_set(2, 0, -2), ElementsAre(0xB8));
  EXPECT_THAT(e4m3_set(2.125, 0.01, 2), ElementsAre(0x38, 0x39));  // 1.0625 is the boundary
  EXPECT_THAT(e4m3_set(2.125, 0.01, -2), ElementsAre(0xB8, 0xB9));
  EXPECT_THAT(e4m3_set(2.125, 0, 2), ElementsAre(0x38));
}

TEST(JudgeE4m3, QuotientIsRoundedToFp32First) {
  // x / s lies above the e4m3 boundary 1.0625 by less than fp32 can say, so fp32's quotient ties to even.
  const float scale = std::nextafter(3.0F, 0.0F);
  const double x = 0x1.98p1;  // 3.1875 = 1.0625 * 3
  ASSERT_GT(x / scale, 1.0625);
  const bool tie = static_cast<float>(x / scale) == 1.0625F;
  EXPECT_THAT(e4m3_set(x, 0, scale), ElementsAre(tie ? 0x38 : 0x39));
}

TEST(JudgeE4m3, FullDivision) {
  const double x = 1.0625 * (1 - 3 * 0x1p-24);
  EXPECT_FALSE(e4m3(x, 0, 0x39, 1, {}, false));
  EXPECT_TRUE(e4m3(x * (1 + 2 * 0x1p-24), 0, 0x38, 1, {}, true));
  EXPECT_TRUE(e4m3(1.0625 * (1 + 0x1p-23), 0, 0x38, 1, {}, true));
  EXPECT_FALSE(e4m3(1.0625 * (1 + 0x1p-23), 0, 0x38, 1, {}, false));
  EXPECT_FALSE(e4m3(1.0625 * (1 + 0x1p-20), 0, 0x38, 1, {}, true));
}

TEST(JudgeE4m3, SaturationIsThePolicysBusiness) {
  const E4m3Policy saturate{true, false}, nan{false, false};
  EXPECT_THAT(e4m3_set(1e4, 0, 1, saturate), ElementsAre(0x7E));
  EXPECT_THAT(e4m3_set(-inf, 0, 1, saturate), ElementsAre(0xFE));
  EXPECT_THAT(e4m3_set(1e4, 0, 1, nan), ElementsAre(0x7F, 0xFF));
  EXPECT_THAT(e4m3_set(464, 0, 1, nan), ElementsAre(0x7E));
  EXPECT_THAT(e4m3_set(464, 1, 1, nan), ElementsAre(0x7E, 0x7F, 0xFF));
  EXPECT_THAT(e4m3_set(447, 0.5, 1, saturate), ElementsAre(0x7E));
}

TEST(JudgeE4m3, Nan) {
  EXPECT_THAT(e4m3_set(not_a_number, 0, 1), ElementsAre(0x7F, 0xFF));
  EXPECT_THAT(e4m3_set(not_a_number, 0, 1, {true, true}), ElementsAre(0x7E, 0xFE));
  EXPECT_THAT(e4m3_set(1, 0, static_cast<float>(not_a_number)), ElementsAre(0x7F, 0xFF));
}

TEST(JudgeE4m3, OddScales) {
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_THAT(e4m3_set(3, 0.5, infinite), ElementsAre(0x00));
  EXPECT_THAT(e4m3_set(-3, 0.5, infinite), ElementsAre(0x80));
  EXPECT_THAT(e4m3_set(0, 0, infinite), ElementsAre(0x00, 0x80));
  EXPECT_THAT(e4m3_set(inf, 0, infinite), ElementsAre(0x7F, 0xFF));
  EXPECT_THAT(e4m3_set(3, 0.5, 0), ElementsAre(0x7E));
  EXPECT_THAT(e4m3_set(-3, 0.5, 0), ElementsAre(0xFE));
  EXPECT_THAT(e4m3_set(0, 0, 0), ElementsAre(0x7F, 0xFF));
  EXPECT_THAT(e4m3_set(0, 1, 0), ElementsAre(0x7E, 0x7F, 0xFE, 0xFF));
  EXPECT_THAT(e4m3_set(3, 0.5, 0, {false, false}), ElementsAre(0x7F, 0xFF));
}

TEST(JudgeE4m3, ZerosKeepTheirSign) {
  EXPECT_THAT(e4m3_set(1e-6, 1e-9, 1), ElementsAre(0x00));
  EXPECT_THAT(e4m3_set(-1e-6, 1e-9, 1), ElementsAre(0x80));
  EXPECT_THAT(e4m3_set(1e-6, 1e-5, 1), ElementsAre(0x00, 0x80));
}

TEST(JudgeFp32, TheIntervalItself) {
  const float next = std::nextafter(1.0F, 2.0F);
  EXPECT_TRUE(fp32(1, 0, 1));
  EXPECT_FALSE(fp32(1, 0, next));
  EXPECT_TRUE(fp32(1 + 0x1p-30, 0, 1));  // rounded to fp32
  EXPECT_TRUE(fp32(1, 0x1p-23, next));
  EXPECT_FALSE(fp32(1, 0x1p-23, std::nextafter(next, 2.0F)));
  EXPECT_TRUE(fp32(inf, 0, std::numeric_limits<float>::infinity()));
  EXPECT_FALSE(fp32(inf, 0, std::numeric_limits<float>::max()));
  EXPECT_TRUE(fp32(not_a_number, 0, -std::numeric_limits<float>::quiet_NaN()));
  EXPECT_FALSE(fp32(0, 0, std::numeric_limits<float>::denorm_min()));
}

TEST(JudgeExact, Bytes) {
  Admissible expected;
  expected.rows = 1;
  expected.columns = 2;
  expected.exact = true;
  const std::int32_t right[2] = {-1, 7}, wrong[2] = {-1, 8};
  expected.codes.resize(sizeof right);
  std::memcpy(expected.codes.data(), right, sizeof right);
  const Comparison how{DType::i32, {}, false};
  std::vector<std::int64_t> reported;
  const auto report = [&](std::int64_t column, double) { reported.push_back(column); };
  judge_row(expected, 0, reinterpret_cast<const std::byte*>(right), how, {}, 0, report);
  EXPECT_THAT(reported, IsEmpty());
  judge_row(expected, 0, reinterpret_cast<const std::byte*>(wrong), how, {}, 0, report);
  EXPECT_THAT(reported, ElementsAre(1));
  EXPECT_EQ(describe_admissible(expected, 1, how, 1), "7");
  EXPECT_EQ(describe_code(reinterpret_cast<const std::byte*>(wrong + 1), DType::i32), "8");
}

TEST(JudgeExact, NansAreOneClassAndZerosAreNot) {
  Admissible expected;
  expected.rows = 1;
  expected.columns = 2;
  expected.exact = true;
  const std::uint16_t right[2] = {0x7FC0, 0x0000};
  expected.codes.resize(sizeof right);
  std::memcpy(expected.codes.data(), right, sizeof right);
  const Comparison how{DType::bf16, {}, false};
  const std::uint16_t nan = 0xFF81, zero = 0x8000, number = 0x3F80;
  EXPECT_TRUE(judge_element(expected, 0, reinterpret_cast<const std::byte*>(&nan), how, 1).admitted);
  EXPECT_FALSE(judge_element(expected, 0, reinterpret_cast<const std::byte*>(&number), how, 1).admitted);
  EXPECT_FALSE(judge_element(expected, 1, reinterpret_cast<const std::byte*>(&zero), how, 1).admitted);
}

// judge_row is judge_element, faster: on random values, scales and codes near them they agree.
TEST(JudgeRow, AgreesWithJudgeElement) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  constexpr std::int64_t columns = 64, tile = 16;
  for (int round = 0; round < 200; ++round) {
    Admissible expected;
    expected.rows = 3;
    expected.columns = columns;
    for (std::int64_t i = 0; i < 3 * columns; ++i) {
      expected.value.push_back(random() % 16 == 0 ? 0 : normal(random) * (random() % 8 == 0 ? 1e-3 : 40));
      expected.error.push_back(random() % 4 == 0 ? 0 : std::abs(expected.value.back()) * 0.02);
      if (random() % 16 == 0) expected.alternatives.push_back({i, normal(random), 0.01});
    }
    const std::vector<float> scales{0.5F, 1.0F, round % 3 == 0 ? 0.0F : 0.125F, 3.0F};
    for (const DType dtype : {DType::e4m3, DType::bf16}) {
      const Comparison how{dtype, {round % 2 == 0, false}, round % 5 == 0};
      std::vector<std::byte> codes(static_cast<std::size_t>(columns * size_of(dtype)));
      std::vector<std::int64_t> wrong, reported;
      double worst = 0;
      for (std::int64_t i = 0; i < columns; ++i) {
        const auto at = static_cast<std::size_t>(columns + i);
        const float scale = dtype == DType::e4m3 ? scales[static_cast<std::size_t>(i / tile)] : 1;
        const double value = expected.value[at] + (random() % 2 == 0 ? 0 : expected.error[at] * normal(random));
        std::byte* const code = codes.data() + i * size_of(dtype);
        if (dtype == DType::e4m3) {
          *code = static_cast<std::byte>(narrow_e4m3(value / scale, how.e4m3));
        } else {
          const std::uint16_t narrow = narrow_bf16(value);
          std::memcpy(code, &narrow, sizeof narrow);
        }
        const ElementJudgement judged = judge_element(expected, columns + i, code, how, scale);
        if (!judged.admitted) {
          wrong.push_back(i);
        } else {
          worst = std::max(worst, judged.fraction);
        }
        EXPECT_EQ(judged.admitted, judged.fraction <= 1);
      }
      const RowJudgement row = judge_row(expected, 1, codes.data(), how, dtype == DType::e4m3 ? scales : std::vector<float>{},
                                         tile, [&](std::int64_t column, double) { reported.push_back(column); });
      ASSERT_EQ(reported, wrong);
      ASSERT_EQ(row.worst, worst);
    }
  }
}

TEST(Describe, CodesAndSets) {
  const Comparison bf16_codes{DType::bf16, {}, false}, e4m3_codes{DType::e4m3, {false, false}, false};
  EXPECT_EQ(describe_admissible(one(1.001, 1e-4), 0, bf16_codes, 1), "0x3F80 (1)");
  EXPECT_EQ(describe_admissible(one(1 + 0x1p-8, 1e-4), 0, bf16_codes, 1), "0x3F80..0x3F81 (1..1.0078)");
  EXPECT_EQ(describe_admissible(one(not_a_number, 0), 0, bf16_codes, 1), "NaN");
  EXPECT_EQ(describe_admissible(one(inf, 0), 0, bf16_codes, 1), "0x7F80 (inf)");
  EXPECT_EQ(describe_admissible(one(464, 1), 0, e4m3_codes, 1), "0x7E (448) or NaN");
  const std::uint16_t minus_one = 0xBF80;
  EXPECT_EQ(describe_code(reinterpret_cast<const std::byte*>(&minus_one), DType::bf16), "0xBF80 (-1)");
  const std::byte nan{0x7F};
  EXPECT_EQ(describe_code(&nan, DType::e4m3), "0x7F (NaN)");
}

}  // namespace
}  // namespace dcpcheck
