// The size of the bounds: no larger than their derivations say. That they are large enough, fused_norm_rope_test.cpp shows.
#include "reference/norms.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "harness/oracle/narrow.hpp"

namespace dcpcheck::reference {
namespace {

std::vector<double> normals(std::size_t n, double mean, double sigma) {
  std::mt19937 random(static_cast<unsigned>(n));
  std::normal_distribution<double> normal(mean, sigma);
  std::vector<double> x(n);
  for (double& element : x) element = widen_bf16(narrow_bf16(normal(random)));
  return x;
}

double worst_relative(std::size_t n, const Arithmetic& how, bool round = false) {
  Row row;
  rms_norm(normals(n, 0, 1), normals(n, 1, 0.2), 1e-6, how, round, row);
  double worst = 0;
  for (std::size_t i = 0; i < n; ++i) worst = std::max(worst, row.error[i] / std::abs(row.value[i]));
  return worst;
}

TEST(RmsNorm, BoundOfAnyOrder) {
  // A width of a power of two has no error in the mean: 1u less of the 7.5u.
  EXPECT_NEAR(worst_relative(512, {}) / u, 511 / 2.0 + 6.5, 0.1);
  EXPECT_NEAR(worst_relative(2048, {}) / u, 2047 / 2.0 + 6.5, 0.5);
  EXPECT_NEAR(worst_relative(1536, {}) / u, 1535 / 2.0 + 7.5, 0.3);
  EXPECT_NEAR(worst_relative(1, {}) / u, 6.5, 0.1);
}

TEST(RmsNorm, BoundOfAKnownDepth) {
  EXPECT_NEAR(worst_relative(512, {128, false}) / u, (3 + 7) / 2.0 + 6.5, 0.1);
  EXPECT_NEAR(worst_relative(1536, {128, false}) / u, (11 + 7) / 2.0 + 7.5, 0.1);
  EXPECT_NEAR(worst_relative(100, {1, false}) / u, 99 / 2.0 + 7.5, 0.1);
}

TEST(RmsNorm, RoundedValuesAreExact) { EXPECT_EQ(worst_relative(512, {}, true), 0); }

TEST(RmsNorm, ValuesOfAPlainRow) {
  Row row;
  rms_norm(std::vector<double>{1, -2, 2, 4}, std::vector<double>{1, 1, 0.5, 2}, 0, {}, false, row);
  EXPECT_NEAR(row.value[0], 0.4, 1e-15);
  EXPECT_NEAR(row.value[1], -0.8, 1e-15);
  EXPECT_NEAR(row.value[2], 0.4, 1e-15);
  EXPECT_NEAR(row.value[3], 3.2, 1e-14);
}

TEST(LayerNorm, ValuesOfAPlainRow) {
  Row row;
  const std::vector<double> weight{1, 2, 1, 1}, bias{0, 0, 1, 0};
  layer_norm(std::vector<double>{1, 3, 1, 3}, weight, bias, 0, {}, row);
  EXPECT_NEAR(row.value[0], -1, 1e-15);
  EXPECT_NEAR(row.value[1], 2, 1e-15);
  EXPECT_NEAR(row.value[2], 0, 1e-15);
  EXPECT_NEAR(row.value[3], 1, 1e-15);
}

// bf16 numbers about 100 lie on a grid of 1/2: their sum is exact in any order, and a large mean costs nothing. Half
// an ulp of the mean would have been 100 times the bound.
TEST(LayerNorm, AnExactSumIsSeen) {
  const std::vector<double> weight(128, 1), bias(128, 0);
  Row large, small;
  layer_norm(normals(128, 100, 1), weight, bias, 1e-6, {}, large);
  layer_norm(normals(128, 0, 1), weight, bias, 1e-6, {}, small);
  for (std::size_t i = 0; i < 128; ++i) {
    EXPECT_LE(large.error[i], (128 / 2.0 + 12) * u * (std::abs(large.value[i]) + 1e-3));
    EXPECT_LE(small.error[i], (128 / 2.0 + 12) * u * (std::abs(small.value[i]) + 1e-3));
  }
  // With one element off the grid the sum may round, and the bound says so.
  std::vector<double> mixed = normals(128, 100, 1);
  mixed[7] = 0x1p-20;
  layer_norm(mixed, weight, bias, 1e-6, {}, large);
  EXPECT_GT(large.error[0], 100 * 100 * u / 20);
}

}  // namespace
}  // namespace dcpcheck::reference
