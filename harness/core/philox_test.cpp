#include "harness/core/philox.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

namespace dcpcheck {
namespace {

// Known answers of philox4x32-10 from Random123's own test vectors: zeros, ones, and digits of pi.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox(0, {0, 0, 0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~std::uint64_t{0}, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, StreamsDiffer) {
  std::set<PhiloxBlock> seen;
  for (const std::uint64_t seed : {0u, 1u, 2u}) {
    for (const char* name : {"", "q_c", "kv_c"}) {
      for (const std::uint32_t part : {0u, 1u}) {
        for (const std::uint64_t index : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
          EXPECT_TRUE(seen.insert(Stream(seed, name, part).block(index)).second);
        }
      }
    }
  }
}

// Runs are made several blocks at a time; of any length and from anywhere they are the plain generator's blocks.
TEST(Philox, RunsAreTheirBlocks) {
  const Stream stream(0x123456789, "x", 5);
  const std::uint64_t near_wrap = 0xFFFFFFFE;  // over the end of the counter's first word
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{3}, near_wrap, ~std::uint64_t{0} - 100}) {
    for (const std::size_t length : {0, 1, 7, 8, 9, 16, 31, 64}) {
      std::vector<PhiloxBlock> run(length);
      stream.blocks(first, run);
      std::vector<std::uint32_t> sums(length);
      stream.sums(first, sums);
      for (std::size_t i = 0; i < length; ++i) {
        const PhiloxBlock block = stream.block(first + i);
        ASSERT_EQ(run[i], block);
        std::uint32_t sum = 0;
        for (const std::uint32_t word : block) sum += word % 65536 + word / 65536;
        ASSERT_EQ(sums[i], sum);
      }
    }
  }
  EXPECT_EQ(stream.word(3), stream.block(3)[0] | static_cast<std::uint64_t>(stream.block(3)[1]) << 32);
}

TEST(Philox, DrawsEachOnce) {
  const Stream stream(3, "draw");
  for (const std::int64_t n : {1, 2, 7, 100}) {
    Draw draw(n);
    std::set<std::int64_t> seen;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t value = draw.next(stream.word(static_cast<std::uint64_t>(i)));
      EXPECT_GE(value, 0);
      EXPECT_LT(value, n);
      EXPECT_TRUE(seen.insert(value).second);
    }
    EXPECT_EQ(draw.left(), 0);
  }
  // Out of a range that no array could hold.
  Draw wide(std::int64_t{1} << 60);
  EXPECT_NE(wide.next(stream.word(0)), wide.next(stream.word(1)));
}

// All 24 orders of four come about equally often.
TEST(Philox, DrawsAreUniform) {
  std::map<std::vector<std::int64_t>, int> counts;
  for (std::uint64_t seed = 0; seed < 24000; ++seed) {
    const Stream stream(seed, "order");
    Draw draw(4);
    std::vector<std::int64_t> order;
    for (std::uint64_t i = 0; i < 4; ++i) order.push_back(draw.next(stream.word(i)));
    ++counts[order];
  }
  EXPECT_EQ(counts.size(), 24u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 160);  // 5 sigma
}

}  // namespace
}  // namespace dcpcheck
