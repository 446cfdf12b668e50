#include "harness/core/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/error.hpp"
#include "harness/core/test_ops.hpp"

namespace dcpcheck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PlanTest : public testing::Test {
 protected:
  Plan plan(const std::string& rest, std::int64_t budget = std::int64_t{1} << 32, const char* op = "fused_norm_rope") const {
    const Case value = case_from_json(ops_, json::parse(R"({"op":")" + std::string(op) + R"(")" + rest + "}", "c"), "c");
    return make_plan(ops_.at(value.op), value, budget);
  }
  const Ops ops_ = ops_of_source();
};

TEST_F(PlanTest, TheThreeCacheLayoutsHaveTheirBytes) {
  const std::string geometry =
      R"(,"geometry":{"batch":[{"uncached":5}],"caches":{"mla":{"block_size":4,"block_stride_padding":64},"indexer":{"block_size":4}}})";
  const Plan ds = plan(geometry + R"(,"params":{"mla_layout":"fp8_ds_mla"})");
  const CachePlan& cache = ds.tensor("mla_cache").cache;
  EXPECT_EQ(cache.record_bytes, 656);
  EXPECT_EQ(cache.block_stride, 4 * 656 + 64);
  EXPECT_EQ(cache.blocks, 1 + 2 + 2);  // block 0, two for five tokens, two spare
  EXPECT_EQ(cache.address(6, cache.fields[1]), cache.block_stride + 2 * 656 + 512);
  const CachePlan& indexer = ds.tensor("indexer_cache").cache;
  EXPECT_TRUE(indexer.planar);
  EXPECT_EQ(indexer.address(6, indexer.fields[0]), 4 * 132 + 2 * 128);
  EXPECT_EQ(indexer.address(6, indexer.fields[1]), 4 * 132 + 4 * 128 + 2 * 4);
  EXPECT_EQ(plan(geometry + R"(,"params":{"mla_layout":"fp8"})").tensor("mla_cache").cache.record_bytes, 576);
  EXPECT_EQ(plan(geometry).tensor("mla_cache").cache.record_bytes, 1152);
}

TEST_F(PlanTest, WhatIsAbsentIsAbsent) {
  const Plan bare =
      plan(R"(,"geometry":{"batch":[{"uncached":5}]},"params":{"indexer":false,"kv_c_out":false,"k_pe_out":false})");
  for (const char* name : {"slot_mapping", "index_slot_mapping", "mla_cache", "indexer_cache", "kv_c_out", "k_pe_out",
                           "topk_indices", "index_k"}) {
    EXPECT_EQ(bare.find(name), nullptr) << name;
  }
  EXPECT_NE(bare.find("q_c_out"), nullptr);
  const Plan unmapped = plan(R"(,"geometry":{"batch":[{"uncached":5}],"caches":{"mla":{"slot_mapping":"none"}}})");
  EXPECT_EQ(unmapped.find("slot_mapping"), nullptr);
  EXPECT_EQ(unmapped.tensor("mla_cache").slot_mapping, "");
}

TEST_F(PlanTest, LayoutsBecomeStrides) {
  const Plan wide = plan(R"(,"geometry":{"batch":[{"uncached":5}]},"layout":{"q_c":{"stride":2624,"offset":16}})");
  const TensorPlan& q_c = wide.tensor("q_c");
  EXPECT_THAT(q_c.strides, ElementsAre(2624, 1));
  EXPECT_EQ(q_c.offset, 16);
  EXPECT_EQ(q_c.storage_elements, 5 * 2624 + 16);
  EXPECT_THAT(wide.tensor("q_c_out").strides, ElementsAre(2048, 1));
  EXPECT_THROW(plan(R"(,"geometry":{"batch":[{"uncached":5}]},"layout":{"q_c":{"stride":2047}})"), InputError);
  EXPECT_THROW(plan(R"(,"params":{"kv_c_out":false},"layout":{"kv_c_out":{"stride":600}})"), InputError);
}

TEST_F(PlanTest, ARecipeThatCannotFillItsTensorIsRefused) {
  EXPECT_THROW(plan(R"(,"geometry":{"batch":[{"uncached":5}]},"params":{"q_lora_rank":3},"values":{"q_c":"unit_circle"})"),
               InputError);
  EXPECT_NO_THROW(plan(R"(,"geometry":{"batch":[{"uncached":5}]},"params":{"q_lora_rank":4},"values":{"q_c":"unit_circle"})"));
}

TEST_F(PlanTest, InPlaceOutputsLieOnTheirInputs) {
  const Plan in_place = plan(
      R"(,"geometry":{"batch":[{"uncached":5}]},"contract":{"k_outputs":"in_place"},"layout":{"kv_c":{"stride":700,"offset":8}})");
  EXPECT_EQ(in_place.tensor("kv_c_out").in_place_of, "kv_c");
  EXPECT_THAT(in_place.tensor("kv_c_out").strides, ElementsAre(700, 1));
  EXPECT_EQ(in_place.tensor("q_c_out").in_place_of, "");
}

TEST_F(PlanTest, ATableForEachGroup) {
  const Plan slots = plan(R"(,"geometry":{"batch":[{"uncached":300},{"cached":64,"uncached":1}],"tp":2,"dcp":{"world_size":2},
    "caches":{"mla":{"block_size":64,"kernel_block_size":32},"draft":{"block_size":16,"slot_mapping":"replicated"}}})",
                          std::int64_t{1} << 32, "compute_slot_mapping");
  EXPECT_THAT(slots.tensor("block_table.mla").shape, ElementsAre(2, 6));  // ceil(300 / 128) logical blocks of two
  EXPECT_THAT(slots.tensor("block_table.draft").shape, ElementsAre(2, 19));
  EXPECT_THAT(slots.tensor("slot_mapping").shape, ElementsAre(2, 301));
}

TEST_F(PlanTest, MemoryIsRefusedBeforeItIsTaken) {
  const std::string huge =
      R"(,"geometry":{"batch":[{"uncached":16777216}],"caches":{}},"params":{"q_lora_rank":16384,"max_position":1048576})";
  try {
    plan(R"(,"geometry":{"batch":[{"uncached":1000000}],"caches":{}},"params":{"q_lora_rank":16384,"max_position":1048576})",
         std::int64_t{1} << 30);
    FAIL() << "a case of over 100 GiB was accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("more than the memory budget of 1024 MiB"));
  }
  EXPECT_THROW(plan(huge), InputError);
  // Each rank's part is one row of 2^47 elements to the recipes, which look at it before the budget does.
  EXPECT_THROW(plan(R"(,"geometry":{"batch":[{"uncached":16777216}],"tp":8,"dcp":{"world_size":8}},
                       "params":{"heads":1024,"v_head_dim":8192})",
                    std::int64_t{1} << 30, "merge_ranks"),
               InputError);
}

}  // namespace
}  // namespace dcpcheck
