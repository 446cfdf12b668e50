#include "harness/exec/stages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/builtin_ops.hpp"

namespace dcpcheck {
namespace {

using testing::ElementsAre;

Case three_requests(std::int64_t budget) {
  Case value;
  value.op = "generate";
  value.geometry.batch = {{10, 3}, {0, 5}, {7, 4}};
  value.geometry.max_batched_tokens = budget;
  value.params["tokens"] = std::int64_t{3};
  value.params["context_workspace"] = std::int64_t{20};
  return value;
}

std::vector<std::string> told(const std::vector<Stage>& stages) {
  std::vector<std::string> lines;
  for (const Stage& stage : stages) {
    std::string line = stage.name + ":";
    for (const Slice& slice : stage.slices)
      line +=
          " " + std::to_string(slice.request) + "[" + std::to_string(slice.cached) + "+" + std::to_string(slice.tokens) + "]";
    lines.push_back(line);
  }
  return lines;
}

TEST(Stages, OneLaunchWhereThereIsRoom) {
  EXPECT_THAT(told(stages_of(three_requests(0))),
              ElementsAre("prefix.0: 0[0+10] 2[0+7]", "prefill.0: 0[10+3] 1[0+5] 2[7+4]", "decode.0: 0[13+1] 1[5+1] 2[11+1]",
                          "decode.1: 0[14+1] 1[6+1] 2[12+1]"));
}

TEST(Stages, ABudgetCutsRequestsWhereItEnds) {
  EXPECT_THAT(told(stages_of(three_requests(6))),
              ElementsAre("prefix.0: 0[0+6]", "prefix.1: 0[6+4] 2[0+2]", "prefix.2: 2[2+5]", "prefill.0: 0[10+3] 1[0+3]",
                          "prefill.1: 1[3+2] 2[7+4]", "decode.0: 0[13+1] 1[5+1] 2[11+1]", "decode.1: 0[14+1] 1[6+1] 2[12+1]"));
  for (const std::int64_t budget : {1, 2, 5, 29, 30}) {
    for (const Stage& stage : stages_of(three_requests(budget))) {
      EXPECT_GT(stage.tokens(), 0);
      EXPECT_TRUE(stage.kind == Stage::Kind::decode || stage.tokens() <= budget) << stage.name;
    }
  }
}

TEST(Stages, TheLastTokenIsNeverCached) { EXPECT_THAT(final_lengths(three_requests(0)), ElementsAre(15, 7, 13)); }

TEST(Stages, ChunksAreWholeTurnsAndCoverTheContext) {
  Case value = three_requests(0);
  value.geometry.world_size = 2;
  value.geometry.interleave = 2;
  const std::vector<Slice> slices = {{0, 30, 1}, {1, 0, 1}, {2, 7, 1}};
  const auto chunks = context_chunks(value, slices);  // 20 tokens over two requests with context: 10, two turns of 4
  ASSERT_EQ(chunks.size(), 4U);
  std::int64_t at = 0;
  for (const ChunkRange& chunk : chunks) {
    EXPECT_EQ(chunk.start, at);
    EXPECT_EQ(chunk.tokens, 8);
    at += chunk.tokens;
  }
  EXPECT_GE(at, 30);
  value.params["context_workspace"] = std::int64_t{1};
  EXPECT_EQ(context_chunks(value, slices).front().tokens, 4) << "a turn at least";
  EXPECT_TRUE(context_chunks(value, {{1, 0, 5}}).empty());
}

// Every launch of a run addresses one and the same cache.
TEST(Stages, LaunchesShareBlocksAndTables) {
  const auto builtins = builtin_ops();
  const Op& mapping = builtins.at("compute_slot_mapping").op;
  const Op& norm = builtins.at("fused_norm_rope").op;
  Case value = three_requests(6);
  value.geometry.tp = 2;
  value.geometry.world_size = 2;
  value.geometry.caches["mla"].block_size = 4;
  value.geometry.caches["mla"].kernel_block_size = 2;
  value.geometry.caches["indexer"] = value.geometry.caches["mla"];
  value.geometry.caches["indexer"].slot_mapping = "same";
  const Blocks blocks = blocks_of(mapping, value);
  ASSERT_EQ(blocks.groups.size(), 1U) << "the indexer has the mla group's";
  const Blocks::Group& mla = blocks.groups.at("mla");
  EXPECT_EQ(mla.blocks, 1 + (2 + 1 + 2) * 2 + 2);  // block 0; virtual blocks of 8 tokens, two kernel blocks each; two spare
  for (const Stage& stage : stages_of(value)) {
    const Plan plan = make_plan(norm, part_case(norm, value, stage.slices, blocks), std::int64_t{1} << 30);
    EXPECT_EQ(plan.tensor("mla_cache").cache.blocks, mla.blocks) << stage.name;
    EXPECT_EQ(plan.tensor("indexer_cache").cache.blocks, mla.blocks) << stage.name;
    const Plan slots = make_plan(mapping, part_case(mapping, value, stage.slices, blocks), std::int64_t{1} << 30);
    EXPECT_EQ(slots.tensor("block_table.mla").shape[1], mla.columns) << stage.name;
    EXPECT_EQ(slots.value.geometry.caches.size(), 1U);
  }
  // A cache without a map of its own is as large in every launch, too.
  value.geometry.caches["indexer"].slot_mapping = "none";
  for (const Stage& stage : stages_of(value)) {
    const Plan plan = make_plan(norm, part_case(norm, value, stage.slices, blocks_of(mapping, value)), std::int64_t{1} << 30);
    EXPECT_EQ(plan.tensor("indexer_cache").cache.blocks, 1 + (4 + 2 + 4) * 2 + 2) << stage.name;
  }
}

TEST(Stages, WhatOpsHaveInCommonIsTakenOver) {
  const auto builtins = builtin_ops();
  const Op& norm = builtins.at("fused_norm_rope").op;
  Case value = three_requests(0);
  value.seed = 99;
  value.params["q_lora_rank"] = std::int64_t{48};
  value.contract["tile_scale"] = "pow2";
  const Case part = part_case(norm, value);
  EXPECT_EQ(part.seed, 99U);
  EXPECT_EQ(part.integer("q_lora_rank"), 48);
  EXPECT_EQ(part.option("tile_scale"), "pow2");
  EXPECT_EQ(part.number("q_eps"), std::get<float>(norm.param("q_eps")->value)) << "what generate does not say has its default";
}

}  // namespace
}  // namespace dcpcheck
