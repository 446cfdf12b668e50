#include "kernels/compute_slot_mapping/compute_slot_mapping.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "kernels/compute_slot_mapping/faults/block_0_past_the_table.hpp"
#include "kernels/compute_slot_mapping/faults/localise_replicated.hpp"
#include "kernels/compute_slot_mapping/faults/localised_before_the_offset.hpp"
#include "kernels/compute_slot_mapping/faults/ownership_in_kernel_blocks.hpp"
#include "kernels/compute_slot_mapping/faults/slots_in_32_bits.hpp"
#include "kernels/compute_slot_mapping/faults/table_row_of_the_batch.hpp"
#include "kernels/compute_slot_mapping/faults/tail_of_zeros.hpp"
#include "kernels/compute_slot_mapping/faults/tail_up_to_the_padded_count.hpp"

namespace kernels::compute_slot_mapping {
namespace {

constexpr std::int64_t kPoison = 0x5555;

struct GroupSpec {
  std::int32_t block_size = 4, kernel_block_size = 4, sharded = 1, enabled = 1;
};

// A batch of requests whose rows of the block tables hold ids of their own.
struct Batch {
  std::vector<std::int32_t> cached, uncached;
  std::vector<GroupSpec> groups{{}};
  std::int64_t world_size = 1, interleave = 1, padding = 0, columns = 40, table_stride = 43;
  bool tail_padded = false, columns_unchecked = false, slots_i32 = false;
  std::int32_t first_id = 100;

  std::int64_t live() const {
    std::int64_t sum = 0;
    for (const std::int32_t tokens : uncached) sum += tokens;
    return sum;
  }

  // slot_mapping[group][capacity] of a rank; 3 elements past each row stay poisoned, which it checks.
  template <class Decisions = Fixed>
  std::vector<std::vector<std::int64_t>> run(std::int64_t rank, std::int64_t capacity, int threads = 1) const {
    std::vector<std::int64_t> positions;
    std::vector<std::int32_t> starts{0}, idx_mapping;
    const auto requests = static_cast<std::int32_t>(cached.size());
    for (std::int32_t r = 0; r < requests; ++r) {
      for (std::int32_t i = 0; i < uncached[r]; ++i) positions.push_back(cached[r] + i);
      starts.push_back(starts.back() + uncached[r]);
      idx_mapping.push_back(requests - 1 - r);  // table rows in another order than the batch's
    }
    positions.resize(positions.size() + static_cast<std::size_t>(padding), -77);
    std::vector<std::int32_t> sizes, kernel_sizes, sharded, enabled;
    std::vector<std::vector<std::int32_t>> tables;
    Args args;
    for (const GroupSpec& group : groups) {
      sizes.push_back(group.block_size);
      kernel_sizes.push_back(group.kernel_block_size);
      sharded.push_back(group.sharded);
      enabled.push_back(group.enabled);
      auto& table = tables.emplace_back(static_cast<std::size_t>(table_stride * requests + 1), -12345);
      for (std::int32_t r = 0; r < requests; ++r) {
        for (std::int32_t c = 0; c < columns; ++c)
          table[static_cast<std::size_t>((requests - 1 - r) * table_stride + c)] = id(r, c);
      }
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
      args.tables[g] = tables[g].data();
      args.table_strides[g] = table_stride;
      args.table_columns[g] = columns;
    }
    const std::int64_t stride = capacity + 3;
    std::vector<std::int64_t> slots(groups.size() * static_cast<std::size_t>(stride), kPoison);
    args.positions = positions.data();
    args.query_start_loc = starts.data();
    args.idx_mapping = idx_mapping.data();
    args.block_sizes = sizes.data();
    args.kernel_block_sizes = kernel_sizes.data();
    args.sharded = sharded.data();
    args.enabled = enabled.data();
    args.slot_mapping = slots.data();
    args.slot_stride = stride;
    args.capacity = capacity;
    args.tokens = static_cast<std::int64_t>(positions.size());
    args.requests = requests;
    args.groups = static_cast<std::int64_t>(groups.size());
    args.world_size = world_size;
    args.interleave = interleave;
    args.rank = rank;
    args.tail_padded = tail_padded;
    args.columns_unchecked = columns_unchecked;
    args.slots_i32 = slots_i32;
    EXPECT_EQ(launch_host<Decisions>(args, threads), "");
    std::vector<std::vector<std::int64_t>> out;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const auto row = slots.begin() + static_cast<std::ptrdiff_t>(g) * stride;
      out.emplace_back(row, row + capacity);
      EXPECT_EQ(std::vector<std::int64_t>(row + capacity, row + stride), std::vector<std::int64_t>(3, kPoison));
    }
    return out;
  }

  std::int32_t id(std::int32_t request, std::int32_t column) const {
    return first_id + request * static_cast<std::int32_t>(columns) + column;
  }
};

using Slots = std::vector<std::int64_t>;

TEST(ComputeSlotMapping, ByHandWithOneRank) {
  Batch batch;
  batch.cached = {2, 0};
  batch.uncached = {3, 2};
  batch.columns = 2;
  // Request 0, ids 100 101: positions 2 3 4; request 1, ids 102 103: positions 0 1; then the tail.
  EXPECT_EQ(batch.run(0, 7), (std::vector<Slots>{{402, 403, 404, 408, 409, -1, -1}}));
}

TEST(ComputeSlotMapping, ByHandWithTwoRanksAndInterleaveTwo) {
  Batch batch;
  batch.cached = {0};
  batch.uncached = {10};
  batch.world_size = 2;
  batch.interleave = 2;
  // Rank 0: positions 0 1 4 5 fill its first block, 8 9 begin its second; rank 1: 2 3 6 7.
  EXPECT_EQ(batch.run(0, 10), (std::vector<Slots>{{400, 401, -1, -1, 402, 403, -1, -1, 404, 405}}));
  EXPECT_EQ(batch.run(1, 10), (std::vector<Slots>{{-1, -1, 400, 401, -1, -1, 402, 403, -1, -1}}));
}

TEST(ComputeSlotMapping, ByHandWithKernelBlocksUnderTheInterleave) {
  Batch batch;
  batch.cached = {0};
  batch.uncached = {10};
  batch.world_size = 2;
  batch.interleave = 4;
  batch.groups = {{4, 2, 1, 1}};
  // Rank 0 owns positions 0-3 as its rows 0-3, kernel blocks 100 and 101 of two rows; then 8 9 in kernel block 102.
  EXPECT_EQ(batch.run(0, 10), (std::vector<Slots>{{200, 201, 202, 203, -1, -1, -1, -1, 204, 205}}));
  EXPECT_EQ(batch.run(1, 10), (std::vector<Slots>{{-1, -1, -1, -1, 200, 201, 202, 203, -1, -1}}));
}

TEST(ComputeSlotMapping, OwnedSlotsPartitionTheTokensAndNoTwoShareOne) {
  for (const std::int64_t world_size : {1, 2, 4, 8}) {
    for (const std::int32_t block : {4, 6, 8}) {
      for (const std::int32_t kernel_block : {1, 2, block}) {
        for (std::int64_t interleave = 1; interleave <= block; ++interleave) {
          if (block % interleave != 0) continue;
          Batch batch;
          batch.cached = {5, 0, 17};
          batch.uncached = {40, 1, 33};
          batch.columns = 80;
          batch.table_stride = 80;
          batch.groups = {{block, kernel_block, 1, 1}};
          batch.world_size = world_size;
          batch.interleave = interleave;
          std::vector<int> owners(74);
          for (std::int64_t rank = 0; rank < world_size; ++rank) {
            std::set<std::int64_t> taken;
            const Slots slots = batch.run(rank, 74, 3).front();
            for (std::size_t t = 0; t < slots.size(); ++t) {
              if (slots[t] < 0) continue;
              ++owners[t];
              EXPECT_TRUE(taken.insert(slots[t]).second) << "slot " << slots[t] << " twice";
            }
          }
          EXPECT_EQ(owners, std::vector<int>(74, 1)) << world_size << ' ' << block << ' ' << kernel_block << ' ' << interleave;
        }
      }
    }
  }
}

TEST(ComputeSlotMapping, TailStartsWhereTheContractSays) {
  Batch batch;
  batch.cached = {0};
  batch.uncached = {2};
  batch.padding = 2;
  EXPECT_EQ(batch.run(0, 6), (std::vector<Slots>{{400, 401, -1, -1, -1, -1}}));
  batch.tail_padded = true;
  EXPECT_EQ(batch.run(0, 6), (std::vector<Slots>{{400, 401, kPoison, kPoison, -1, -1}}));
}

TEST(ComputeSlotMapping, BlocksPastTheTableRowGiveMinusOne) {
  Batch batch;
  batch.cached = {0};
  batch.uncached = {10};
  batch.columns = 2;
  EXPECT_EQ(batch.run(0, 10), (std::vector<Slots>{{400, 401, 402, 403, 404, 405, 406, 407, -1, -1}}));
  batch.columns_unchecked = true;  // then the neighbour's bytes are taken for an id
  EXPECT_EQ(batch.run(0, 10), (std::vector<Slots>{{400, 401, 402, 403, 404, 405, 406, 407, -49380, -49379}}));
}

TEST(ComputeSlotMapping, GroupsAreReplicatedShardedOrLeftAlone) {
  Batch batch;
  batch.cached = {0};
  batch.uncached = {4};
  batch.world_size = 2;
  batch.groups = {{4, 4, 0, 1}, {4, 4, 1, 1}, {4, 4, 1, 0}};
  for (const std::int64_t rank : {0, 1}) {
    const auto slots = batch.run(rank, 5);
    EXPECT_EQ(slots[0], (Slots{400, 401, 402, 403, -1}));
    EXPECT_EQ(slots[1], rank == 0 ? (Slots{400, -1, 401, -1, -1}) : (Slots{-1, 400, -1, 401, -1}));
    EXPECT_EQ(slots[2], Slots(5, kPoison));
  }
}

TEST(ComputeSlotMapping, ThirtyTwoBitSlotsWrap) {
  Batch batch;
  batch.cached = {0};
  batch.uncached = {1};
  batch.first_id = 1 << 30;
  EXPECT_EQ(batch.run(0, 1), (std::vector<Slots>{{std::int64_t{1} << 32}}));
  batch.slots_i32 = true;
  EXPECT_EQ(batch.run(0, 1), (std::vector<Slots>{{0}}));
}

TEST(ComputeSlotMapping, NoTokensLeavesOnlyTheTail) {
  const Batch none;
  EXPECT_EQ(none.run(0, 3), (std::vector<Slots>{Slots(3, -1)}));
  EXPECT_EQ(none.run(0, 0), (std::vector<Slots>{{}}));
}

TEST(ComputeSlotMapping, FaultsDifferWhereTheyShould) {
  Batch batch;
  batch.cached = {0};
  batch.uncached = {64};
  batch.world_size = 2;
  batch.interleave = 2;
  // Kernel blocks as large as logical ones, a sharded group: neither fault shows.
  EXPECT_EQ(batch.run(1, 64), batch.run<faults::ownership_in_kernel_blocks>(1, 64));
  EXPECT_EQ(batch.run(1, 64), batch.run<faults::localise_replicated>(1, 64));
  batch.groups = {{8, 2, 1, 1}, {8, 8, 0, 1}};
  batch.interleave = 8;
  const auto right = batch.run(1, 64);
  const auto blocks = batch.run<faults::ownership_in_kernel_blocks>(1, 64);
  EXPECT_NE(blocks[0], right[0]);
  EXPECT_EQ(blocks[1], right[1]);
  const auto localised = batch.run<faults::localise_replicated>(1, 64);
  EXPECT_EQ(localised[0], right[0]);
  EXPECT_NE(localised[1], right[1]);
  EXPECT_EQ(std::count(localised[1].begin(), localised[1].end(), -1), 32);
}

TEST(ComputeSlotMapping, FaultsOfTheTail) {
  Batch batch;
  batch.cached = {0};
  batch.uncached = {2};
  batch.padding = 2;
  EXPECT_EQ(batch.run<faults::tail_of_zeros>(0, 6), (std::vector<Slots>{{400, 401, 0, 0, 0, 0}}));
  EXPECT_EQ(batch.run<faults::tail_up_to_the_padded_count>(0, 6), (std::vector<Slots>{{400, 401, -1, -1, kPoison, kPoison}}));
}

TEST(ComputeSlotMapping, FaultsOfTheBlockTable) {
  Batch batch;
  batch.cached = {0, 0};
  batch.uncached = {5, 5};
  batch.columns = 1;
  // Ids 100 and 101; the position past each row's one block has none.
  EXPECT_EQ(batch.run(0, 10), (std::vector<Slots>{{400, 401, 402, 403, -1, 404, 405, 406, 407, -1}}));
  EXPECT_EQ(batch.run<faults::table_row_of_the_batch>(0, 10),
            (std::vector<Slots>{{404, 405, 406, 407, -1, 400, 401, 402, 403, -1}}));
  EXPECT_EQ(batch.run<faults::block_0_past_the_table>(0, 10),
            (std::vector<Slots>{{400, 401, 402, 403, 0, 404, 405, 406, 407, 0}}));
  batch.first_id = 1 << 30;
  EXPECT_EQ(batch.run<faults::slots_in_32_bits>(0, 10), (std::vector<Slots>{{0, 1, 2, 3, -1, 4, 5, 6, 7, -1}}));
}

TEST(ComputeSlotMapping, LocalisedBeforeTheOffsetNeedsAPrefixThatEndsInsideATurn) {
  Batch batch;
  batch.cached = {3};
  batch.uncached = {4};
  batch.world_size = 2;
  // Rank 0 owns positions 4 and 6 of 3 to 6, its rows 2 and 3. Apart: 3 has place 1, and 1 and 3 have places 0 and 1.
  EXPECT_EQ(batch.run(0, 4), (std::vector<Slots>{{-1, 402, -1, 403}}));
  EXPECT_EQ(batch.run<faults::localised_before_the_offset>(0, 4), (std::vector<Slots>{{-1, 401, -1, 402}}));
  batch.cached = {4};
  EXPECT_EQ(batch.run<faults::localised_before_the_offset>(0, 4), batch.run(0, 4));
}

}  // namespace
}  // namespace kernels::compute_slot_mapping
