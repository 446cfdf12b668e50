#include "harness/oracle/canonical.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace dcpcheck {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

Admissible interval(double value, double error) {
  Admissible expected;
  expected.rows = expected.columns = 1;
  expected.value = {value};
  expected.error = {error};
  return expected;
}

template <class Code>
Admissible exactly(Code code) {
  Admissible expected;
  expected.rows = expected.columns = 1;
  expected.exact = true;
  expected.codes.resize(sizeof code);
  std::memcpy(expected.codes.data(), &code, sizeof code);
  return expected;
}

Comparison of(DType dtype) {
  Comparison how;
  how.dtype = dtype;
  return how;
}

TEST(CanonicalCode, IsTheNearestAndNanTheOneOfDigests) {
  const Comparison bf16 = of(DType::bf16);
  EXPECT_EQ(canonical_code(interval(1, 1e-3), 0, bf16, 1), 0x3F80U);
  EXPECT_EQ(canonical_code(interval(-1.005859375, 0), 0, bf16, 1), 0xBF81U);
  EXPECT_EQ(canonical_code(interval(nan, 0), 0, bf16, 1), 0x7FC0U);
  EXPECT_EQ(canonical_code(interval(-inf, 0), 0, bf16, 1), 0xFF80U);
  EXPECT_EQ(canonical_code(exactly<std::uint16_t>(0xFFC1), 0, bf16, 1), 0x7FC0U);
  EXPECT_EQ(canonical_code(exactly<std::uint16_t>(0xFF80), 0, bf16, 1), 0xFF80U);
  EXPECT_EQ(canonical_code(exactly<std::int32_t>(-1), 0, of(DType::i32), 1), 0xFFFFFFFFU);
  EXPECT_EQ(canonical_code(exactly<std::int64_t>(-1), 0, of(DType::i64), 1), ~std::uint64_t{0});
}

TEST(CanonicalCode, DividesByTheScaleAsTheContractSays) {
  Comparison e4m3 = of(DType::e4m3);
  EXPECT_EQ(canonical_code(interval(2, 0.01), 0, e4m3, 2), 0x38U);
  EXPECT_EQ(canonical_code(interval(-1e6, 0.01), 0, e4m3, 1), 0xFEU);
  EXPECT_EQ(canonical_code(interval(nan, 0), 0, e4m3, 1), 0x7FU);
  e4m3.e4m3.saturate = false;
  EXPECT_EQ(canonical_code(interval(-1e6, 0.01), 0, e4m3, 1), 0x7FU) << "one NaN for both signs";
}

// The last bits of fp64, which differ between C libraries, do not reach an fp32's code.
TEST(CanonicalCode, OfAnUncertainFp32IsCoarse) {
  const Comparison fp32 = of(DType::fp32);
  const double middle = 1 + 0x1p-24, above = std::nextafter(middle, 2), below = std::nextafter(middle, 0);
  EXPECT_NE(static_cast<float>(above), static_cast<float>(below));
  EXPECT_EQ(canonical_code(interval(above, 1e-6), 0, fp32, 1), canonical_code(interval(below, 1e-6), 0, fp32, 1));
  EXPECT_NE(canonical_code(interval(above, 0), 0, fp32, 1), canonical_code(interval(below, 0), 0, fp32, 1)) << "exact values";
  EXPECT_EQ(canonical_code(interval(1.5, 1e-6), 0, fp32, 1), 0x3FC00000U);
  EXPECT_EQ(canonical_code(interval(nan, 0), 0, fp32, 1), 0x7FC00000U);
}

// What stands for all is itself one that is admitted, but for fp32, whose codes are cut.
TEST(CanonicalCode, IsAdmitted) {
  for (const DType dtype : {DType::bf16, DType::e4m3}) {
    for (const bool saturate : {true, false}) {
      for (const bool clamp : {true, false}) {
        for (const float scale : {1.0F, 0.25F, -3.0F, 1e-30F, 0.0F, std::numeric_limits<float>::infinity()}) {
          if (dtype == DType::bf16 && scale != 1) continue;
          if (clamp && !saturate) continue;  // a clamp that gives a number for a NaN does so for what is too large
          Comparison how = of(dtype);
          how.e4m3 = {saturate, clamp};
          for (const double value : {0.0, -0.0, 1.0, -1.00390625, 1e-42, 447.9, 464.0, -1e30, inf, -inf, nan, 3.5e38}) {
            for (const double error : {0.0, 1e-9, 0.5, inf}) {
              const Admissible expected = interval(value, error);
              const std::uint64_t code = canonical_code(expected, 0, how, scale);
              std::vector<std::byte> bytes(8);
              std::memcpy(bytes.data(), &code, 8);
              EXPECT_TRUE(judge_element(expected, 0, bytes.data(), how, scale).admitted)
                  << name_of(dtype) << " " << value << " +- " << error << " at scale " << scale << ", saturate " << saturate
                  << ", clamp " << clamp << ": " << code;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace dcpcheck
