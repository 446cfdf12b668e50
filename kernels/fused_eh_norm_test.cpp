#include "kernels/fused_eh_norm/fused_eh_norm.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/fused_eh_norm/faults/eps_left_out.hpp"
#include "kernels/fused_eh_norm/faults/eps_outside_the_root.hpp"
#include "kernels/fused_eh_norm/faults/first_tokens_kept.hpp"
#include "kernels/fused_eh_norm/faults/halves_swapped.hpp"
#include "kernels/fused_eh_norm/faults/last_element_dropped.hpp"
#include "kernels/fused_eh_norm/faults/mean_over_one_more.hpp"
#include "kernels/fused_eh_norm/faults/mean_over_padded_width.hpp"
#include "kernels/fused_eh_norm/faults/stride_lost_in_second_pass.hpp"
#include "kernels/fused_eh_norm/faults/weight_of_the_other.hpp"
#include "kernels/fused_eh_norm/faults/zeroed_by_product.hpp"
#include "kernels/fused_eh_norm/faults/zeroed_by_row.hpp"

namespace kernels::fused_eh_norm {
namespace {

using Codes = std::vector<std::uint16_t>;

constexpr std::uint16_t kPoison = 0xA5A5, kNaN = 0x7FC0;

// Rows of `width` elements, `gap` of them NaN between two.
Codes spread(const Codes& dense, std::int64_t width, std::int64_t gap) {
  Codes out;
  for (std::size_t i = 0; i < dense.size(); ++i) {
    out.push_back(dense[i]);
    if ((i + 1) % static_cast<std::size_t>(width) == 0) out.insert(out.end(), static_cast<std::size_t>(gap), kNaN);
  }
  return out;
}

struct Trial {
  std::int64_t width, gap = 0;
  std::vector<std::int64_t> positions = {0, 1, 2, 0, 7, 8};
  Codes embeds, hidden, embeds_weight, hidden_weight;
  float embeds_eps = 1e-6F, hidden_eps = 1e-5F;
  bool norm_round = false;
  int threads = 1;

  explicit Trial(std::int64_t n, float sigma = 1) : width(n) {
    std::mt19937 generator(static_cast<std::uint32_t>(n));
    std::normal_distribution<float> normal;
    const auto codes = [&](std::size_t count, float mean, float deviation) {
      Codes out(count);
      for (auto& code : out) code = dcpcheck::encode_bf16(mean + deviation * normal(generator));
      return out;
    };
    const auto row = static_cast<std::size_t>(n);
    embeds = codes(row * positions.size(), 0, sigma);
    hidden = codes(row * positions.size(), 0, 2 * sigma);
    embeds_weight = codes(row, 1, 0.2F);
    hidden_weight = codes(row, 1, 0.2F);
  }

  std::int64_t tokens() const { return static_cast<std::int64_t>(positions.size()); }

  // The output, dense; nothing may be written around its rows.
  template <class Decisions = Fixed>
  Codes run() const {
    const Codes e = spread(embeds, width, gap), h = spread(hidden, width, 2 * gap);
    const std::int64_t stride = 2 * width + gap;
    Codes memory(static_cast<std::size_t>((tokens() + 1) * stride), kPoison), out;
    Args args;
    args.tokens = tokens();
    args.width = width;
    args.positions = positions.data();
    args.embeds = {e.data(), width + gap, embeds_weight.data(), embeds_eps};
    args.hidden = {h.data(), width + 2 * gap, hidden_weight.data(), hidden_eps};
    args.out = memory.data();
    args.out_stride = stride;
    args.norm_round = norm_round;
    EXPECT_EQ(launch_host<Decisions>(args, threads), "");
    for (std::int64_t t = 0; t < tokens(); ++t) {
      const auto row = memory.begin() + t * stride;
      out.insert(out.end(), row, row + 2 * width);
      std::fill(row, row + 2 * width, kPoison);
    }
    EXPECT_EQ(std::count(memory.begin(), memory.end(), kPoison), static_cast<std::ptrdiff_t>(memory.size()));
    return out;
  }

  // Token t's output, in fp64.
  std::vector<double> exact(std::int64_t t) const {
    std::vector<double> out;
    for (const bool first : {true, false}) {
      const Codes &x = first ? embeds : hidden, &weight = first ? embeds_weight : hidden_weight;
      const bool zeroed = first && positions[static_cast<std::size_t>(t)] == 0;
      double squares = 0;
      for (std::int64_t i = 0; i < width; ++i) squares += std::pow(dcpcheck::decode_bf16(x[t * width + i]), 2);
      const auto eps = static_cast<double>(first ? embeds_eps : hidden_eps);
      const double root = std::sqrt(squares / static_cast<double>(width) + eps);
      for (std::int64_t i = 0; i < width; ++i) {
        out.push_back(zeroed ? 0 : dcpcheck::decode_bf16(x[t * width + i]) / root * dcpcheck::decode_bf16(weight[i]));
      }
    }
    return out;
  }
};

TEST(FusedEhNorm, ByHand) {
  Trial trial(2);
  trial.positions = {0, 5};
  trial.embeds = {kNaN, 0x7F80, 0x4040, 0x4080};    // NaN, inf; 3, 4: rms is sqrt(12.5)
  trial.hidden = {0x4040, 0xC080, 0x3F80, 0x3F80};  // 3, -4; 1, 1
  trial.embeds_weight = {0x3F80, 0x4000};           // 1, 2
  trial.hidden_weight = {0x3F80, 0x3F00};           // 1, 1/2
  const Codes got = trial.run();
  const double expected[] = {0, 0, 0.848528, -0.565685, 0.848528, 2.262742, 1, 0.5};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(dcpcheck::decode_bf16(got[i]), expected[i], 0.01) << i;
  EXPECT_EQ(got[0], 0);
  EXPECT_EQ(got[1], 0);
}

TEST(FusedEhNorm, IsTwoNormsAtAnyWidth) {
  for (const std::int64_t width : {1, 2, 127, 128, 129, 1536, 16384}) {
    for (const float sigma : {1.0F, 1e-3F}) {
      const Trial trial(width, sigma);
      const Codes got = trial.run();
      for (std::int64_t t = 0; t < trial.tokens(); ++t) {
        const std::vector<double> exact = trial.exact(t);
        for (std::int64_t i = 0; i < 2 * width; ++i) {
          ASSERT_NEAR(dcpcheck::decode_bf16(got[t * 2 * width + i]), exact[i], std::abs(exact[i]) * 0x1.02p-8)
              << width << ' ' << i;
        }
      }
    }
  }
}

TEST(FusedEhNorm, StridesAndThreadsChangeNoBit) {
  Trial trial(200);
  const Codes plain = trial.run();
  trial.gap = 7;
  EXPECT_EQ(trial.run(), plain);
  trial.threads = 5;
  EXPECT_EQ(trial.run(), plain);
}

TEST(FusedEhNorm, FirstTokensTakeNothingOfTheirEmbedding) {
  Trial trial(200);
  const Codes plain = trial.run();
  for (const std::size_t t : {0U, 3U}) std::fill_n(trial.embeds.begin() + static_cast<std::ptrdiff_t>(t * 200), 200, kNaN);
  EXPECT_EQ(trial.run(), plain);
}

TEST(FusedEhNorm, RoundsBeforeTheWeightWhereAsked) {
  Trial trial(512);
  const Codes plain = trial.run();
  trial.norm_round = true;
  const Codes rounded = trial.run();
  EXPECT_NE(rounded, plain);
  // With weights of 1 the two rounds are one.
  std::fill(trial.embeds_weight.begin(), trial.embeds_weight.end(), std::uint16_t{0x3F80});
  std::fill(trial.hidden_weight.begin(), trial.hidden_weight.end(), std::uint16_t{0x3F80});
  const Codes once = trial.run();
  trial.norm_round = false;
  EXPECT_EQ(trial.run(), once);
  EXPECT_NE(once, rounded);
}

TEST(FusedEhNorm, NoTokensAndTooMany) {
  Trial trial(8);
  trial.positions.clear();
  EXPECT_TRUE(trial.run().empty());
  Args args;
  args.tokens = std::int64_t{1} << 31;
  EXPECT_NE(launch_host<Fixed>(args, 1), "");
}

// Rows of the halves, by part and token, in which a fault differs from the right kernel: "e0 h3".
template <class Fault>
std::string changed(const Trial& trial) {
  const Codes right = trial.run(), got = trial.run<Fault>();
  std::string out;
  for (std::int64_t part = 0; part < 2; ++part) {
    for (std::int64_t t = 0; t < trial.tokens(); ++t) {
      const std::int64_t at = (2 * t + part) * trial.width;
      if (std::equal(got.begin() + at, got.begin() + at + trial.width, right.begin() + at)) continue;
      out += (out.empty() ? "" : " ") + std::string(1, part == 0 ? 'e' : 'h') + std::to_string(t);
    }
  }
  return out;
}

TEST(FusedEhNormFaults, DifferWhereTheyShould) {
  Trial trial(384);
  trial.positions = {4, 0, 0};
  trial.embeds.resize(3 * 384);
  trial.hidden.resize(3 * 384);
  for (std::size_t last = 383; last < 3 * 384; last += 384) trial.embeds[last] = trial.hidden[last] = 0x4100;  // 8
  EXPECT_EQ(changed<faults::first_tokens_kept>(trial), "e1 e2");
  EXPECT_EQ(changed<faults::zeroed_by_row>(trial), "e0 e1 e2");
  EXPECT_EQ(changed<faults::zeroed_by_product>(trial), "e1 e2");  // by the sign of zeros, which no judge holds against it
  EXPECT_EQ(changed<faults::halves_swapped>(trial), "e0 e1 e2 h0 h1 h2");
  EXPECT_EQ(changed<faults::weight_of_the_other>(trial), "e0 h0 h1 h2");
  EXPECT_EQ(changed<faults::last_element_dropped>(trial), "e0 h0 h1 h2");
  EXPECT_EQ(changed<faults::mean_over_one_more>(trial), "e0 h0 h1 h2");
  EXPECT_EQ(changed<faults::mean_over_padded_width>(trial), "e0 h0 h1 h2");
  EXPECT_EQ(changed<faults::eps_left_out>(trial), "e1 e2");  // 0 times infinity; elsewhere eps is far under a code's step
  EXPECT_EQ(changed<faults::stride_lost_in_second_pass>(trial), "");
  trial.gap = 3;
  EXPECT_EQ(changed<faults::stride_lost_in_second_pass>(trial), "h1 h2");
  Trial low(512, 1e-3F);  // eps is as large as the mean square
  low.positions = {4, 5};
  EXPECT_EQ(changed<faults::eps_left_out>(low), "e0 e1 h0 h1");
  EXPECT_EQ(changed<faults::eps_outside_the_root>(low), "e0 e1 h0 h1");
  EXPECT_EQ(changed<faults::mean_over_padded_width>(low), "");  // 512 lanes are its width
}

TEST(FusedEhNormFaults, AProductKeepsNaN) {
  Trial trial(64);
  trial.embeds[5] = kNaN;  // of token 0, at position 0
  const Codes got = trial.run<faults::zeroed_by_product>();
  EXPECT_EQ(got[5], kNaN);
  EXPECT_EQ(trial.run()[5], 0);
}

}  // namespace
}  // namespace kernels::fused_eh_norm
