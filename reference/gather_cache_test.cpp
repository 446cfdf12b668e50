#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/core/bf16.hpp"
#include "harness/core/chunk.hpp"
#include "harness/core/e4m3.hpp"
#include "reference/error_bounds.hpp"
#include "reference/test_case.hpp"

namespace dcpcheck::reference::testing {
namespace {

const Admissible& workspace(const Worked& worked) { return worked.expected.find("workspace")->second; }

// Element `column` of the workspace's row `row`, as it must be.
std::uint16_t code_at(const Worked& worked, std::int64_t row, std::int64_t column = 0) {
  std::uint16_t code = 0;
  std::memcpy(&code, workspace(worked).codes.data() + (row * workspace(worked).columns + column) * 2, 2);
  return code;
}

std::byte* record_at(Worked& worked, std::int64_t rank, std::int64_t slot, std::size_t field = 0) {
  const CachePlan& cache = worked.plan.tensor("mla_cache").cache;
  return worked.inputs.ranks[static_cast<std::size_t>(rank)].at("mla_cache").data() + cache.address(slot, cache.fields[field]);
}

// Every slot of every rank holds its own number.
void tag_slots(Worked& worked) {
  const std::int64_t slots = worked.plan.tensor("mla_cache").cache.slots();
  for (std::int64_t rank = 0; rank < worked.plan.value.geometry.tp; ++rank) {
    for (std::int64_t slot = 0; slot < slots; ++slot) {
      const auto tag = static_cast<std::uint16_t>(slot);
      std::memcpy(record_at(worked, rank, slot), &tag, sizeof tag);
    }
  }
}

TEST(GatherCache, ByHand) {
  // Two ranks, blocks of 4 cut into kernel blocks of 2, runs of 2: positions 0 1 | 2 3 | 4 5 | 6 7 | 8 go to ranks 0 1 0 1 0.
  Worked worked(
      R"({"op": "gather_cache", "geometry": {"batch": [{"cached": 9}], "tp": 2, "dcp": {"world_size": 2, "interleave": 2},
    "chunk": {"start": 4}, "caches": {"mla": {"block_size": 4, "kernel_block_size": 2, "spare_blocks": 9}}},
    "params": {"kv_lora_rank": 1, "qk_rope_head_dim": 0}})");
  const std::vector<std::int32_t> table = {9, 5, 7, 3};
  Bytes& bytes = worked.inputs.shared.find("block_table")->second;
  ASSERT_EQ(bytes.size(), 16U);
  std::memcpy(bytes.data(), table.data(), 16);
  tag_slots(worked);
  // From position 4 on: rank 0 owns 4 5 8 as its rows 2 3 4, which lie in kernel blocks 5, 5, 7; rank 1 owns 6 7.
  worked.refresh({}, 0);
  EXPECT_EQ(workspace(worked).rows, 4);
  EXPECT_TRUE(workspace(worked).exact);
  EXPECT_EQ(code_at(worked, 0), 10);
  EXPECT_EQ(code_at(worked, 1), 11);
  EXPECT_EQ(code_at(worked, 2), 14);
  worked.refresh({}, 1);
  EXPECT_EQ(code_at(worked, 0), 10);
  EXPECT_EQ(code_at(worked, 1), 11);
}

TEST(GatherCache, AgreesWithThePlanOfTheChunk) {
  for (const std::string mapping : {"dcp", "replicated"}) {
    for (const std::int64_t world : {1, 2, 4}) {
      for (const std::int64_t run : {1, 4, 16}) {
        const std::int64_t turn = world * run;
        Worked worked(
            R"({"op": "gather_cache", "geometry": {"batch": [{"cached": 200}, {}, {"cached": 77, "uncached": 9}, {"cached": 9}],
          "tp": 4, "dcp": {"world_size": )" +
            std::to_string(world) + R"(, "interleave": )" + std::to_string(run) + R"(}, "chunk": {"start": )" +
            std::to_string(turn) + R"(, "tokens": )" + std::to_string(2 * turn) +
            R"(}, "caches": {"mla": {"block_size": 16, "kernel_block_size": 8, "slot_mapping": ")" + mapping +
            R"("}}}, "params": {"kv_lora_rank": 1, "qk_rope_head_dim": 2}, "layout": {"block_table": {"stride": 40}}})");
        tag_slots(worked);
        const ChunkPlan plan = plan_chunk(worked.plan.value.geometry, worked.plan.value.geometry.caches.at("mla"));
        const auto table = block_table(worked.plan, "mla");
        for (std::int64_t rank = 0; rank < 4; ++rank) {
          worked.refresh({2, 0}, rank);
          std::int64_t row = 0;
          for (std::size_t request = 0; request < plan.requests.size(); ++request) {
            for (std::int64_t i = 0; i < plan.valid_rows(request, rank); ++i) {
              const std::int64_t local = plan.requests[request].local_start + i;
              const std::int64_t slot = table[request][static_cast<std::size_t>(local / 8)] * 8 + local % 8;
              ASSERT_EQ(code_at(worked, row + i), slot) << mapping << ' ' << world << ' ' << run << ' ' << rank;
            }
            row += plan.requests[request].padded;
          }
          ASSERT_EQ(row, workspace(worked).rows);
        }
      }
    }
  }
}

TEST(GatherCache, CodesTimesTheScale) {
  Worked worked(R"({"op": "gather_cache", "geometry": {"batch": [{"cached": 20}], "caches": {"mla": {"block_size": 8}}},
    "params": {"kv_lora_rank": 6, "qk_rope_head_dim": 2, "mla_layout": "fp8"}})");
  const float scale = static_cast<float>(Reader(worked.plan, worked.inputs, "mla_scale", 0).number(0));
  const auto table = block_table(worked.plan, "mla");
  std::byte* const codes = record_at(worked, 0, table[0][1] * 8 + 3);  // row 11
  codes[5] = std::byte{0x7F};
  codes[7] = std::byte{0x80};
  worked.refresh();
  const Admissible& rows = workspace(worked);
  ASSERT_FALSE(rows.exact);
  EXPECT_TRUE(std::isnan(rows.value[11 * 8 + 5]));
  EXPECT_EQ(rows.value[11 * 8 + 7], 0);
  for (std::size_t i = 0; i < 8; ++i) {
    if (i == 5) continue;
    const float code = decode_e4m3(static_cast<std::uint8_t>(codes[i]));
    EXPECT_EQ(rows.value[11 * 8 + i], static_cast<double>(code) * scale);
    EXPECT_GE(rows.error[11 * 8 + i], std::abs(static_cast<double>(code * scale) - rows.value[11 * 8 + i]));
    EXPECT_LE(rows.error[11 * 8 + i], 1.01 * u * std::abs(rows.value[11 * 8 + i]) + 1e-45);
    // What a kernel may store, and what one that left the scale out does.
    const auto admits = [&](float value) {
      const std::uint16_t stored = encode_bf16(value);
      const auto* bytes = reinterpret_cast<const std::byte*>(&stored);
      return judge_element(rows, static_cast<std::int64_t>(11 * 8 + i), bytes, {DType::bf16, {}, false}, 1).admitted;
    };
    EXPECT_TRUE(admits(code * scale)) << i;
    EXPECT_EQ(admits(code), code == 0) << i;
  }
}

TEST(GatherCache, TilesHaveTheirOwnScales) {
  Worked worked(R"({"op": "gather_cache", "geometry": {"batch": [{"cached": 5}], "caches": {"mla": {"block_size": 8}}},
    "params": {"mla_layout": "fp8_ds_mla"}})");
  const std::int64_t slot = block_table(worked.plan, "mla")[0][0] * 8 + 2;
  const float scales[4] = {0.5F, 3.0F, 0.3F, std::numeric_limits<float>::infinity()};
  std::memcpy(record_at(worked, 0, slot, 1), scales, sizeof scales);
  const std::uint16_t rope = 0xBF81;
  std::memcpy(record_at(worked, 0, slot, 2), &rope, sizeof rope);
  worked.refresh();
  const Admissible& rows = workspace(worked);
  ASSERT_EQ(rows.columns, 576);
  for (std::size_t i = 0; i < 512; ++i) {
    const double code = decode_e4m3(static_cast<std::uint8_t>(record_at(worked, 0, slot)[i]));
    const double value = rows.value[2 * 576 + i];
    if (code == 0 && i >= 384) {
      EXPECT_TRUE(std::isnan(value));
    } else {
      EXPECT_EQ(value, code * scales[i / 128]) << i;
    }
  }
  EXPECT_EQ(rows.value[2 * 576 + 512], decode_bf16(rope));
  EXPECT_EQ(rows.error[2 * 576 + 512], 0);
}

}  // namespace
}  // namespace dcpcheck::reference::testing
