#include "kernels/reorg_context/reorg_context.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/reorg_context/faults/interleave_ignored.hpp"
#include "kernels/reorg_context/faults/ranks_reversed.hpp"
#include "kernels/reorg_context/faults/request_order_lost.hpp"
#include "kernels/reorg_context/faults/stale_rows_read.hpp"

namespace kernels::reorg_context {
namespace {

constexpr std::uint16_t kPoison = 0x5555, kStale = 0x7777;

// Requests of some tokens, dealt to the ranks in turns; a token's row holds its request and number in every element.
struct Batch {
  std::vector<std::int32_t> tokens;
  std::int64_t world_size = 1, interleave = 1, width = 3;
  bool rank_major = false;

  static std::uint16_t tag(std::size_t request, std::int32_t token) {
    return static_cast<std::uint16_t>(1000 * (request + 1) + static_cast<std::size_t>(token));
  }

  // Which tokens of a request each rank owns, by dealing them out.
  std::vector<std::vector<std::int32_t>> dealt(std::size_t request) const {
    std::vector<std::vector<std::int32_t>> ranks(static_cast<std::size_t>(world_size));
    for (std::int32_t token = 0; token < tokens[request];) {
      for (auto& rank : ranks) {
        for (std::int64_t i = 0; i < interleave && token < tokens[request]; ++i) rank.push_back(token++);
      }
    }
    return ranks;
  }

  // Rank 0's rows, rounded up to whole runs.
  std::int32_t padded(std::size_t request) const {
    const auto run = static_cast<std::int32_t>(interleave);
    return (static_cast<std::int32_t>(dealt(request)[0].size()) + run - 1) / run * run;
  }

  // The tag of each row of the context; rows are checked to be alike throughout, and the gaps between them untouched.
  template <class Decisions = Fixed>
  std::vector<std::uint16_t> run(int threads = 1) const {
    std::vector<std::int32_t> local{0}, context{0};
    for (std::size_t request = 0; request < tokens.size(); ++request) {
      local.push_back(local.back() + padded(request));
      context.push_back(context.back() + tokens[request]);
    }
    std::vector<std::uint16_t> gathered(static_cast<std::size_t>(world_size * local.back() * width), kStale);
    for (std::size_t request = 0; request < tokens.size(); ++request) {
      const auto ranks = dealt(request);
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        for (std::size_t row = 0; row < ranks[rank].size(); ++row) {
          const auto at = static_cast<std::int64_t>(rank) * local.back() + local[request] + static_cast<std::int64_t>(row);
          for (std::int64_t i = 0; i < width; ++i)
            gathered[static_cast<std::size_t>(at * width + i)] = tag(request, ranks[rank][row]);
        }
      }
    }
    const std::int64_t stride = width + 2;
    std::vector<std::uint16_t> out(static_cast<std::size_t>(context.back() * stride), kPoison);
    Args args;
    args.gathered = gathered.data();
    args.piece_stride = local.back() * width;
    args.width = width;
    args.local_offsets = local.data();
    args.context_offsets = context.data();
    args.requests = static_cast<std::int64_t>(tokens.size());
    args.context = out.data();
    args.context_stride = stride;
    args.rows = context.back();
    args.world_size = world_size;
    args.interleave = interleave;
    args.rank_major = rank_major;
    EXPECT_EQ(launch_host<Decisions>(args, threads), "");
    std::vector<std::uint16_t> tags;
    for (std::size_t at = 0; at < out.size(); at += static_cast<std::size_t>(stride)) {
      tags.push_back(out[at]);
      for (std::int64_t i = 0; i < stride; ++i) {
        EXPECT_EQ(out[at + static_cast<std::size_t>(i)], i < width ? out[at] : kPoison);
      }
    }
    return tags;
  }

  std::vector<std::uint16_t> right() const {
    std::vector<std::uint16_t> tags;
    for (std::size_t request = 0; request < tokens.size(); ++request) {
      if (!rank_major) {
        for (std::int32_t token = 0; token < tokens[request]; ++token) tags.push_back(tag(request, token));
        continue;
      }
      for (const auto& rank : dealt(request)) {
        for (const std::int32_t token : rank) tags.push_back(tag(request, token));
      }
    }
    return tags;
  }
};

TEST(ReorgContext, EveryTokenOnceInEitherOrder) {
  for (std::int64_t world_size = 1; world_size <= 8; ++world_size) {
    for (const std::int64_t interleave : {1, 2, 5, 16}) {
      for (const bool rank_major : {false, true}) {
        Batch batch{{0, 1, 77, 16, 0, 0, 5, 128, 0}, world_size, interleave, 3, rank_major};
        ASSERT_EQ(batch.run(3), batch.right()) << world_size << ' ' << interleave << ' ' << rank_major;
      }
    }
  }
}

TEST(ReorgContext, TheOrdersOfFourRanks) {
  Batch batch{{8}, 4, 1, 1, true};
  EXPECT_EQ(batch.run(), (std::vector<std::uint16_t>{1000, 1004, 1001, 1005, 1002, 1006, 1003, 1007}));
  batch.rank_major = false;
  EXPECT_EQ(batch.run(), (std::vector<std::uint16_t>{1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007}));
}

TEST(ReorgContext, NoContextIsNotLaunched) {
  const Batch none{{0, 0}, 4, 1, 3, false};
  EXPECT_TRUE(none.run().empty());
}

TEST(ReorgContext, FaultsDifferWhereTheyShould) {
  // One request of whole turns of one: none shows.
  for (const bool rank_major : {false, true}) {
    const Batch plain{{16}, 4, 1, 3, rank_major};
    EXPECT_EQ(plain.run<faults::stale_rows_read>(), plain.right());
    EXPECT_EQ(plain.run<faults::interleave_ignored>(), plain.right());
    EXPECT_EQ(plain.run<faults::request_order_lost>(), plain.right());
    const Batch runs{{16}, 4, 2, 3, rank_major};
    EXPECT_EQ(runs.run<faults::stale_rows_read>(), runs.right());
    EXPECT_EQ(runs.run<faults::interleave_ignored>() == runs.right(), rank_major);  // equal lengths: the same rows
    const Batch two{{8, 8}, 4, 1, 3, rank_major};
    std::vector<std::uint16_t> first = two.right();
    std::copy(first.begin(), first.begin() + 8, first.begin() + 8);
    EXPECT_EQ(two.run<faults::request_order_lost>(), first);
  }
  // Five tokens over four ranks: ranks 1 to 3 have one row and one that nobody wrote.
  const Batch ragged{{5}, 4, 1, 1, true};
  EXPECT_EQ(ragged.right(), (std::vector<std::uint16_t>{1000, 1004, 1001, 1002, 1003}));
  EXPECT_EQ(ragged.run<faults::stale_rows_read>(), (std::vector<std::uint16_t>{1000, 1004, 1001, kStale, 1002}));
  const Batch part{{5}, 2, 4, 1, true};  // rank 0 has four, rank 1 one
  EXPECT_NE(part.run<faults::interleave_ignored>(), part.right());
  const Batch turns{{8}, 4, 1, 1, true};
  EXPECT_EQ(turns.run<faults::ranks_reversed>(), (std::vector<std::uint16_t>{1003, 1007, 1002, 1006, 1001, 1005, 1000, 1004}));
}

}  // namespace
}  // namespace kernels::reorg_context
