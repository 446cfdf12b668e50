#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/dcp.hpp"
#include "reference/test_case.hpp"

namespace dcpcheck::reference::testing {
namespace {

std::vector<std::int64_t> slots_in(const Worked& worked) {
  const Admissible& all = worked.expected.find("slot_mapping")->second;
  std::vector<std::int64_t> slots(static_cast<std::size_t>(all.rows * all.columns));
  std::memcpy(slots.data(), all.codes.data(), all.codes.size());
  return slots;
}

// Replaces a dense input's numbers.
template <class T>
void replace(Worked& worked, const std::string& name, const std::vector<T>& numbers) {
  Bytes& bytes = worked.inputs.shared.find(name)->second;
  ASSERT_EQ(bytes.size(), numbers.size() * sizeof(T));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
}

TEST(SlotMapping, ByHand) {
  // Two ranks, blocks of 4 cut into kernel blocks of 2, runs of 2: positions 0 1 | 2 3 | 4 5 | 6 7 go to ranks 0 1 0 1.
  const std::string text =
      R"({"op": "compute_slot_mapping", "geometry": {"batch": [{"cached": 3, "uncached": 7}], "max_batched_tokens": 9,
    "tp": 2, "dcp": {"world_size": 2, "interleave": 2},
    "caches": {"a": {"block_size": 4, "kernel_block_size": 2}, "b": {"block_size": 4, "slot_mapping": "replicated"}}}})";
  Worked worked(text, {}, 1);
  replace<std::int32_t>(worked, "block_table.a", {9, 5, 7, 3});
  worked.refresh({}, 1);
  // Positions 3 .. 9: rank 1 owns 2 3 6 7 as its rows 0 1 2 3; its rows 1, 2, 3 lie in kernel blocks 9, 5, 5.
  const std::vector<std::int64_t> slots = slots_in(worked);
  EXPECT_EQ(std::vector<std::int64_t>(slots.begin(), slots.begin() + 9),
            (std::vector<std::int64_t>{19, -1, -1, 10, 11, -1, -1, -1, -1}));
  worked.refresh({}, 0);
  // Rank 0 owns 4 5 as rows 2 3, and 8 9 as rows 4 5 (kernel block 7).
  const std::vector<std::int64_t> others = slots_in(worked);
  EXPECT_EQ(std::vector<std::int64_t>(others.begin(), others.begin() + 9),
            (std::vector<std::int64_t>{-1, 10, 11, -1, -1, 14, 15, -1, -1}));
}

TEST(SlotMapping, AgreesWithTheClosedFormAndPartitions) {
  for (const std::int64_t world : {1, 2, 4, 8}) {
    for (const std::int64_t run : {1, 4, 16, 64}) {
      const std::string text =
          R"({"op": "compute_slot_mapping", "geometry": {"batch": [{"cached": 700, "uncached": 129}, {"uncached": 600}], "tp": 8,
        "dcp": {"world_size": )" +
          std::to_string(world) + R"(, "interleave": )" + std::to_string(run) +
          R"(}, "caches": {"g": {"block_size": 64, "kernel_block_size": 16}}}})";
      Worked worked(text);
      std::vector<int> owners(729, 0);
      for (std::int64_t rank = 0; rank < 8; ++rank) {
        worked.refresh({}, rank);
        const std::vector<std::int64_t> slots = slots_in(worked);
        const Reader positions(worked.plan, worked.inputs, "positions", rank),
            table(worked.plan, worked.inputs, "block_table.g", rank);
        const Reader rows(worked.plan, worked.inputs, "idx_mapping", rank);
        const dcp::Sharding sharding{64, world, run};
        for (std::int64_t t = 0; t < 729; ++t) {
          const std::int64_t position = positions.integer(t), local = dcp::local_index(sharding, position);
          const bool owned = dcp::owner(sharding, position) == rank % world;
          const std::int64_t right = owned ? table.integer(rows.integer(t < 129 ? 0 : 1), local / 16) * 16 + local % 16 : -1;
          ASSERT_EQ(slots[static_cast<std::size_t>(t)], right) << world << ' ' << run << ' ' << rank << ' ' << t;
          owners[static_cast<std::size_t>(t)] += owned && rank < world ? 1 : 0;
        }
      }
      ASSERT_EQ(std::count(owners.begin(), owners.end(), 1), 729);
    }
  }
}

TEST(SlotMapping, ReplicatedGroupsAreWholeAndShortTablesEnd) {
  const std::string text =
      R"({"op": "compute_slot_mapping", "geometry": {"batch": [{"uncached": 40}], "tp": 2, "dcp": {"world_size": 2},
    "caches": {"r": {"block_size": 8, "kernel_block_size": 8, "slot_mapping": "replicated", "table_columns": 3}}}})";
  const Worked worked(text, {}, 1);
  const std::vector<std::int64_t> slots = slots_in(worked);
  const Reader table(worked.plan, worked.inputs, "block_table.r", 0);
  for (std::int64_t t = 0; t < 40; ++t) {
    const std::int64_t row = Reader(worked.plan, worked.inputs, "idx_mapping", 0).integer(0);
    EXPECT_EQ(slots[static_cast<std::size_t>(t)], t < 24 ? table.integer(row, t / 8) * 8 + t % 8 : -1);
  }
}

}  // namespace
}  // namespace dcpcheck::reference::testing
