#include "harness/core/dcp.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace dcpcheck::dcp {
namespace {

// Calls body(sharding) for every W <= 8, several B and every I that divides B.
template <class Body>
void each_sharding(Body body) {
  for (const std::int64_t block : {1, 2, 3, 12, 16, 64}) {
    for (std::int64_t world = 1; world <= 8; ++world) {
      for (std::int64_t interleave = 1; interleave <= block; ++interleave) {
        if (block % interleave == 0) body(Sharding{block, world, interleave});
      }
    }
  }
}

TEST(Dcp, KnownPlaces) {
  // W = 4, I = 1: positions are dealt one by one.
  const Sharding one{64, 4, 1};
  EXPECT_EQ(owner(one, 0), 0);
  EXPECT_EQ(owner(one, 5), 1);
  EXPECT_EQ(local_index(one, 5), 1);
  EXPECT_EQ(owner(one, 255), 3);
  EXPECT_EQ(local_index(one, 255), 63);
  EXPECT_EQ(owner(one, 256), 0);
  EXPECT_EQ(local_index(one, 256), 64);
  // W = 2, I = 16: in runs of 16.
  const Sharding runs{64, 2, 16};
  EXPECT_EQ(owner(runs, 15), 0);
  EXPECT_EQ(owner(runs, 16), 1);
  EXPECT_EQ(local_index(runs, 16), 0);
  EXPECT_EQ(local_index(runs, 33), 17);
  EXPECT_EQ(local_length(runs, 24, 0), 16);
  EXPECT_EQ(local_length(runs, 24, 1), 8);
}

// Every (owner, local index) is taken by one position, and each rank's local indices have no holes.
TEST(Dcp, Bijection) {
  each_sharding([](const Sharding& sharding) {
    const std::int64_t blocks = 3;
    const std::int64_t local = blocks * sharding.block_size;
    std::vector<int> taken(static_cast<std::size_t>(local * sharding.world_size), 0);
    for (std::int64_t position = 0; position < local * sharding.world_size; ++position) {
      const std::int64_t rank = owner(sharding, position);
      const std::int64_t index = local_index(sharding, position);
      ASSERT_GE(rank, 0);
      ASSERT_LT(rank, sharding.world_size);
      ASSERT_GE(index, 0);
      ASSERT_LT(index, local);
      ++taken[static_cast<std::size_t>(rank * local + index)];
    }
    for (const int count : taken) ASSERT_EQ(count, 1);
  });
}

// The closed form against counting; and a rank's rows fill 0 .. length - 1 in the order of positions.
TEST(Dcp, LocalLengthIsTheCount) {
  each_sharding([](const Sharding& sharding) {
    std::vector<std::int64_t> counted(static_cast<std::size_t>(sharding.world_size), 0);
    for (std::int64_t tokens = 0; tokens <= 2 * sharding.block_size * sharding.world_size + 3; ++tokens) {
      for (std::int64_t rank = 0; rank < sharding.world_size; ++rank) {
        ASSERT_EQ(local_length(sharding, tokens, rank), counted[static_cast<std::size_t>(rank)])
            << "B " << sharding.block_size << " W " << sharding.world_size << " I " << sharding.interleave << " n " << tokens
            << " r " << rank;
      }
      std::int64_t& next = counted[static_cast<std::size_t>(owner(sharding, tokens))];
      ASSERT_EQ(local_index(sharding, tokens), next);
      ++next;
    }
  });
}

}  // namespace
}  // namespace dcpcheck::dcp
