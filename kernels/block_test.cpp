#include "kernels/block.cuh"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace kernels {
namespace {

// Widths about a block's, and rows that end within one.
constexpr std::int64_t kWidths[] = {0, 1, 2, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000, 2048, 16383};

std::vector<float> random_terms(std::int64_t n, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> terms(static_cast<std::size_t>(n));
  // Widely different magnitudes: two orders of summation then hardly ever agree.
  for (float& term : terms) term = normal(generator) * std::exp2(3.0F * normal(generator));
  return terms;
}

// The order that block.cuh promises, written out one element at a time.
float sum_in_order(const std::vector<float>& terms) {
  float acc[128] = {};
  for (std::size_t i = 0; i < terms.size(); ++i) acc[i % 128] = acc[i % 128] + terms[i];
  for (int s = 64; s >= 1; s /= 2) {
    for (int l = 0; l < s; ++l) acc[l] = acc[l] + acc[l + s];
  }
  return acc[0];
}

TEST(Block, SumsInItsOneOrder) {
  for (const std::int64_t n : kWidths) {
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
      const std::vector<float> terms = random_terms(n, seed);
      const float* const data = terms.data();
      const float sum = Block().sum(n, [=](std::int64_t i) { return data[i]; });
      ASSERT_EQ(std::bit_cast<std::uint32_t>(sum), std::bit_cast<std::uint32_t>(sum_in_order(terms))) << n << " terms";
    }
  }
}

TEST(Block, TheOrderOfASumCanBeSeen) {
  // The test above would pass on any order if these terms did not tell orders apart.
  const std::vector<float> terms = random_terms(2048, 1);
  float left_to_right = 0;
  for (const float term : terms) left_to_right += term;
  EXPECT_NE(left_to_right, sum_in_order(terms));
}

TEST(Block, SumOfNothingIsPlusZero) {
  const float sum = Block().sum(0, [](std::int64_t) { return 1.0F; });
  EXPECT_EQ(std::bit_cast<std::uint32_t>(sum), 0U);
}

TEST(Block, MaxIsTheLargestAndNoNaN) {
  for (const std::int64_t n : kWidths) {
    std::vector<float> terms(static_cast<std::size_t>(n), 0.25F);
    const float* const data = terms.data();
    const auto term = [=](std::int64_t i) { return data[i]; };
    EXPECT_EQ(Block().max(2.0F, n, term), 2.0F);
    for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
      if (n < 3) continue;
      terms.assign(terms.size(), 0.25F);
      terms[static_cast<std::size_t>(n / 3)] = std::numeric_limits<float>::quiet_NaN();
      terms[static_cast<std::size_t>(at)] = 7.0F;
      EXPECT_EQ(Block().max(0.0F, n, term), 7.0F) << at << " of " << n;
    }
    terms.assign(terms.size(), std::numeric_limits<float>::quiet_NaN());
    EXPECT_EQ(Block().max(0.5F, n, term), 0.5F);
  }
}

TEST(Block, EachVisitsEveryElementOnce) {
  for (const std::int64_t n : kWidths) {
    std::vector<int> visits(static_cast<std::size_t>(n));
    int* const data = visits.data();
    Block().each(n, [=](std::int64_t i) { ++data[i]; });
    EXPECT_EQ(visits, std::vector<int>(static_cast<std::size_t>(n), 1));
  }
}

TEST(LaunchHost, RunsEveryBlockOnceOnAnyNumberOfThreads) {
  for (const int threads : {1, 2, 7}) {
    std::vector<std::atomic<int>> runs(300 * 4 * 2);
    const std::string why = launch_host({300, 4, 2}, 0, threads, [&](const Block& block) {
      ++runs[static_cast<std::size_t>((block.x * 4 + block.y) * 2 + block.z)];
    });
    EXPECT_EQ(why, "");
    for (const auto& count : runs) ASSERT_EQ(count.load(), 1);
  }
}

TEST(LaunchHost, GivesBlocksTheirScratch) {
  std::atomic<int> wrong = 0;
  launch_host({500, 1, 1}, 1000, 4, [&](const Block& block) {
    for (int i = 0; i < 1000; ++i) block.scratch[i] = static_cast<float>(block.x);
    for (int i = 0; i < 1000; ++i) wrong += block.scratch[i] != static_cast<float>(block.x);
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST(LaunchHost, DoesNotLaunchAnEmptyGrid) {
  for (const Grid grid : {Grid{0, 4, 1}, Grid{4, 0, 1}, Grid{4, 4, 0}}) {
    EXPECT_EQ(launch_host(grid, 0, 1, [](const Block&) { FAIL(); }), "");
  }
}

TEST(LaunchHost, RefusesWhatCudaRefuses) {
  const auto launch = [](Grid grid) { return launch_host(grid, 0, 1, [](const Block&) { FAIL(); }); };
  EXPECT_NE(launch({std::int64_t{1} << 31, 1, 1}).find("invalid configuration argument"), std::string::npos);
  EXPECT_NE(launch({1, 65536, 1}).find("65536"), std::string::npos);
  EXPECT_NE(launch({1, 1, 65536}), "");
  EXPECT_NE(launch({-1, 1, 1}), "");
  EXPECT_NE(launch({0, 65536, 1}), "");
  EXPECT_NE(launch({std::int64_t{1} << 32, 1, 1}), "");  // 0 in 32 bits
  EXPECT_EQ(refusal({2147483647, 65535, 65535}), "");
  int blocks = 0;
  EXPECT_EQ(launch_host({1, 65535, 1}, 0, 1, [&](const Block&) { ++blocks; }), "");
  EXPECT_EQ(blocks, 65535);
}

}  // namespace
}  // namespace kernels
