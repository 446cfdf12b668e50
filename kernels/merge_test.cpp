// merge_ranks and merge_chunks.
#include "kernels/merge.cuh"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/merge_chunks/faults/base_e_as_2.hpp"
#include "kernels/merge_chunks/faults/empty_not_neutral.hpp"
#include "kernels/merge_chunks/faults/max_left_out.hpp"
#include "kernels/merge_chunks/faults/suffix_ignored.hpp"
#include "kernels/merge_chunks/merge_chunks.cuh"
#include "kernels/merge_ranks/faults/base_2_as_e.hpp"
#include "kernels/merge_ranks/faults/empty_not_neutral.hpp"
#include "kernels/merge_ranks/faults/plus_inf_wins.hpp"
#include "kernels/merge_ranks/faults/unweighted_mean.hpp"
#include "kernels/merge_ranks/merge_ranks.cuh"

namespace kernels {
namespace {

using Floats = std::vector<float>;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<std::uint32_t> bits(const Floats& values) {
  std::vector<std::uint32_t> out;
  for (const float value : values) out.push_back(std::bit_cast<std::uint32_t>(value));
  return out;
}

// The merge of one token of one head: part r has the LSE lses[r] and width outputs.
struct Merged {
  Floats out;
  float lse = -1;
};

template <class Decisions = merge_ranks::Fixed>
Merged merge_of(const std::vector<Floats>& outs, const Floats& lses, bool base_2 = false) {
  Floats all;
  for (const Floats& out : outs) all.insert(all.end(), out.begin(), out.end());
  Merged merged;
  merged.out.resize(outs.front().size());
  merge_ranks::Args args;
  args.partial_out = all.data();
  args.out_rank_stride = static_cast<std::int64_t>(outs.front().size());
  args.partial_lse = lses.data();
  args.lse_rank_stride = 1;
  args.out = merged.out.data();
  args.lse = &merged.lse;
  args.ranks = static_cast<std::int64_t>(lses.size());
  args.tokens = 1;
  args.heads = 1;
  args.width = args.out_rank_stride;
  args.base_2 = base_2;
  EXPECT_EQ(merge_ranks::launch_host<Decisions>(args, 1), "");
  return merged;
}

TEST(Merge, EqualPartsGiveTheirMean) {
  const Merged merged = merge_of({{1, 2}, {3, -2}, {5, 8}, {7, 0}}, {0.5F, 0.5F, 0.5F, 0.5F});
  EXPECT_EQ(merged.out, (Floats{4, 2}));
  EXPECT_NEAR(merged.lse, 0.5 + std::log(4.0), 1e-6);
}

TEST(Merge, WeighsByMass) {
  // Masses 3 and 1.
  const Merged by_e = merge_of({{4}, {8}}, {std::log(3.0F), 0}), by_2 = merge_of({{4}, {8}}, {std::log2(3.0F), 0}, true);
  EXPECT_NEAR(by_e.out[0], 5, 1e-6);
  EXPECT_NEAR(by_e.lse, std::log(4.0), 1e-6);
  EXPECT_NEAR(by_2.out[0], 5, 1e-6);
  EXPECT_NEAR(by_2.lse, 2, 1e-6);
}

TEST(Merge, EmptyPartsAreNeutralWhateverTheyHold) {
  const Floats out{0.1F, -7.3F};
  for (const float empty : {-kInf, kInf, kNaN}) {
    for (const float held : {kNaN, kInf, 3.0F}) {
      const Merged after = merge_of({out, {held, held}}, {1.7F, empty}), before = merge_of({{held, held}, out}, {empty, 1.7F});
      EXPECT_EQ(bits(after.out), bits(out));
      EXPECT_EQ(bits(before.out), bits(out));
      EXPECT_EQ(after.lse, 1.7F);
      EXPECT_EQ(before.lse, 1.7F);
      const Merged none = merge_of({{held}, {held}}, {empty, empty});
      EXPECT_EQ(bits(none.out), bits({0.0F}));
      EXPECT_EQ(none.lse, -kInf);
    }
  }
}

TEST(Merge, HoldsAtAnySizeOfLse) {
  for (const float level : {-3e38F, -1e4F, -200.0F, 0.0F, 200.0F, 1e4F}) {
    const Merged merged = merge_of({{2}, {4}}, {level, level});
    EXPECT_EQ(merged.out[0], 3.0F) << level;
    EXPECT_NEAR(merged.lse, level + std::log(2.0F), std::abs(level) * 1e-7 + 1e-6);
  }
  EXPECT_EQ(merge_of({{2}, {4}}, {-3e38F, 3e38F}).out[0], 4.0F);
}

TEST(MergeRanks, FaultsDifferWhereTheyShould) {
  namespace faults = merge_ranks::faults;
  const std::vector<Floats> outs{{4}, {8}};
  EXPECT_NE(merge_of<faults::base_2_as_e>(outs, {3, 0}, true).out, merge_of(outs, {3, 0}, true).out);
  EXPECT_EQ(merge_of<faults::base_2_as_e>(outs, {3, 0}).out, merge_of(outs, {3, 0}).out);
  EXPECT_TRUE(std::isnan(merge_of<faults::empty_not_neutral>({{kNaN}, {8}}, {-kInf, 0}).out[0]));
  EXPECT_TRUE(std::isnan(merge_of<faults::empty_not_neutral>(outs, {-kInf, -kInf}).out[0]));
  EXPECT_EQ(merge_of<faults::plus_inf_wins>(outs, {kInf, 0}).out[0], 4.0F);
  EXPECT_EQ(merge_of(outs, {kInf, 0}).out[0], 8.0F);
  EXPECT_EQ(merge_of<faults::unweighted_mean>(outs, {3, 0}).out[0], 6.0F);
}

// Rows of two tokens of two heads of three, in wider memory.
struct Chunks {
  Floats prefix, suffix, prefix_lse, suffix_lse;

  explicit Chunks(std::uint32_t seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal(0, 2);
    for (Floats* const part : {&prefix, &suffix}) part->resize(20);
    for (Floats* const part : {&prefix_lse, &suffix_lse}) part->resize(10);
    for (Floats* const part : {&prefix, &suffix, &prefix_lse, &suffix_lse}) {
      for (float& value : *part) value = normal(generator);
    }
  }
  // out | lse, with what lies between the rows.
  template <class Decisions = merge_chunks::Fixed>
  Floats run(bool in_place) const {
    Floats out = in_place ? prefix : Floats(20, -1), lse = in_place ? prefix_lse : Floats(10, -1);
    merge_chunks::Args args;
    args.prefix = {in_place ? out.data() : prefix.data(), 10, in_place ? lse.data() : prefix_lse.data(), 5};
    args.suffix = {suffix.data(), 10, suffix_lse.data(), 5};
    args.out = out.data();
    args.out_stride = 10;
    args.lse = lse.data();
    args.lse_stride = 5;
    args.tokens = 2;
    args.heads = 2;
    args.width = 3;
    EXPECT_EQ(merge_chunks::launch_host<Decisions>(args, 1), "");
    Floats all;
    for (std::size_t token = 0; token < 2; ++token) {
      const auto row = static_cast<std::ptrdiff_t>(token);
      all.insert(all.end(), out.begin() + row * 10, out.begin() + row * 10 + 6);
      all.insert(all.end(), lse.begin() + row * 5, lse.begin() + row * 5 + 2);
      if (!in_place) {
        EXPECT_EQ(out[token * 10 + 6], -1.0F);
        EXPECT_EQ(lse[token * 5 + 2], -1.0F);
      }
    }
    return all;
  }
};

TEST(MergeChunks, IsTheMergeOfTwoRanks) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Chunks chunks(seed);
    const Floats all = chunks.run(false);
    EXPECT_EQ(bits(chunks.run(true)), bits(all));
    for (std::size_t token = 0; token < 2; ++token) {
      for (std::size_t head = 0; head < 2; ++head) {
        const auto at = static_cast<std::ptrdiff_t>(token * 10 + head * 3);
        const Merged merged = merge_of({{chunks.prefix.begin() + at, chunks.prefix.begin() + at + 3},
                                        {chunks.suffix.begin() + at, chunks.suffix.begin() + at + 3}},
                                       {chunks.prefix_lse[token * 5 + head], chunks.suffix_lse[token * 5 + head]});
        const auto found = all.begin() + static_cast<std::ptrdiff_t>(token * 8 + head * 3);
        EXPECT_EQ(bits({found, found + 3}), bits(merged.out));
        EXPECT_EQ(all[token * 8 + 6 + head], merged.lse);
      }
    }
  }
}

TEST(MergeChunks, FaultsDifferWhereTheyShould) {
  namespace faults = merge_chunks::faults;
  Chunks chunks(3);
  EXPECT_NE(chunks.run<faults::base_e_as_2>(false), chunks.run(false));
  Chunks equal = chunks;
  equal.suffix_lse = equal.prefix_lse;
  const Floats by_2 = equal.run<faults::base_e_as_2>(false), by_e = equal.run(false);
  EXPECT_EQ(by_2[0], by_e[0]);  // parts of one mass: only the LSE shows the base
  EXPECT_NE(by_2[6], by_e[6]);
  EXPECT_NE(chunks.run<faults::suffix_ignored>(false), chunks.run(false));
  EXPECT_EQ(chunks.run<faults::suffix_ignored>(false)[0], chunks.prefix[0]);
  chunks.prefix_lse[0] = chunks.suffix_lse[0] = -1e4F;
  chunks.prefix_lse[1] = -kInf;
  chunks.prefix[3] = kNaN;
  EXPECT_TRUE(std::isnan(chunks.run<faults::max_left_out>(false)[0]));
  EXPECT_FALSE(std::isnan(chunks.run(false)[0]));
  EXPECT_NE(bits(chunks.run<faults::empty_not_neutral>(false)), bits(chunks.run(false)));
}

}  // namespace
}  // namespace kernels
