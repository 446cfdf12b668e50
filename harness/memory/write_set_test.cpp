#include "harness/memory/write_set.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "harness/core/test_ops.hpp"

namespace dcpcheck {
namespace {

class WriteSetTest : public testing::Test {
 protected:
  Plan plan(const char* op, const std::string& rest) const {
    const Case value = case_from_json(ops_, json::parse(R"({"op":")" + std::string(op) + "\"" + rest + "}", "c"), "c");
    return make_plan(ops_.at(value.op), value, std::int64_t{1} << 32);
  }
  static std::int64_t bytes(const std::vector<Span>& spans, Duty duty) {
    std::int64_t sum = 0;
    std::int64_t end = 0;
    for (const Span& span : spans) {
      EXPECT_GE(span.begin, end) << "sorted, and never overlapping";
      end = span.end;
      if (span.duty == duty) sum += span.end - span.begin;
    }
    return sum;
  }
  const Ops ops_ = ops_of_source();
};

TEST_F(WriteSetTest, LiveRowsMustPaddingRowsMayAndTheRestMustNot) {
  const Plan p = plan(
      "fused_norm_rope",
      R"(,"geometry":{"batch":[{"uncached":5}],"padding":{"tokens":2},"max_batched_tokens":20},"params":{"q_lora_rank":7,"index_topk":3,"max_position":16},"layout":{"q_c_out":{"stride":9,"offset":4}})");
  const Inputs inputs = make_inputs(p);
  const auto q = write_set(p, p.tensor("q_c_out"), inputs, 0);
  EXPECT_EQ(bytes(q, Duty::must), 5 * 7 * 2);
  EXPECT_EQ(bytes(q, Duty::may), 2 * 7 * 2);
  EXPECT_EQ(q[1].begin, (4 + 9) * 2);
  const auto topk = write_set(p, p.tensor("topk_indices"), inputs, 0);
  EXPECT_EQ(bytes(topk, Duty::must), 5 * 3 * 4);
  EXPECT_EQ(bytes(topk, Duty::may), 2 * 3 * 4);
}

TEST_F(WriteSetTest, EachRecordIsWrittenOnItsOwnerAlone) {
  const Plan p = plan("fused_norm_rope", R"(,"geometry":{"batch":[{"cached":3,"uncached":9}],"tp":4,"dcp":{"world_size":4},
    "caches":{"mla":{"block_size":4,"block_stride_padding":64},"indexer":{"block_size":4,"slot_mapping":"same"}}},"params":{"q_lora_rank":7,"index_topk":3,"max_position":16,"mla_layout":"fp8_ds_mla"})");
  const Inputs inputs = make_inputs(p);
  std::multiset<std::int64_t> tokens;
  std::int64_t indexer = 0;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const auto spans = write_set(p, p.tensor("mla_cache"), inputs, rank);
    for (const Span& span : spans) {
      if (span.field == 0) tokens.insert(span.row);
    }
    indexer += bytes(write_set(p, p.tensor("indexer_cache"), inputs, rank), Duty::must);
  }
  EXPECT_EQ(tokens, (std::multiset<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(indexer, 9 * 132);
}

TEST_F(WriteSetTest, SlotMapsHaveATailAndDisabledGroupsNone) {
  const std::string geometry =
      R"(,"geometry":{"batch":[{"uncached":5}],"padding":{"tokens":2},"max_batched_tokens":20,"caches":{"a":{},"b":{"enabled":false}}})";
  const Plan from_end = plan("compute_slot_mapping", geometry);
  const auto all = write_set(from_end, from_end.tensor("slot_mapping"), make_inputs(from_end), 0);
  EXPECT_EQ(bytes(all, Duty::must), 20 * 8);
  EXPECT_LE(all.back().end, 20 * 8) << "the row of the disabled group b is not ours";
  const Plan padded = plan("compute_slot_mapping", geometry + R"(,"contract":{"tail":"padded"})");
  const auto split = write_set(padded, padded.tensor("slot_mapping"), make_inputs(padded), 0);
  EXPECT_EQ(bytes(split, Duty::must), 18 * 8);
  EXPECT_EQ(bytes(split, Duty::may), 2 * 8);
}

TEST_F(WriteSetTest, NoSlotMappingMeansNoCacheWrite) {
  const Plan p = plan(
      "fused_norm_rope",
      R"(,"geometry":{"batch":[{"uncached":5}],"caches":{"mla":{"slot_mapping":"none"}}},"params":{"q_lora_rank":7,"index_topk":3,"max_position":16})");
  EXPECT_TRUE(write_set(p, p.tensor("mla_cache"), make_inputs(p), 0).empty());
}

TEST_F(WriteSetTest, GatheredRowsAreTheRanksOwnAndThoseUpToThePaddedLengthAreFree) {
  const Plan p = plan("gather_cache", R"(,"geometry":{"batch":[{"cached":9},{},{"cached":2}],"tp":4,"dcp":{"world_size":4},
    "caches":{"mla":{"block_size":4}}},"params":{"kv_lora_rank":5,"qk_rope_head_dim":2},"layout":{"workspace":{"stride":9,"offset":1}})");
  const Inputs inputs = make_inputs(p);
  // Padded: 3 rows and 1. Rank 0 owns three of the first request's tokens, the others two; ranks 2 and 3 none of the last's.
  for (const auto& [rank, must] : std::map<std::int64_t, std::int64_t>{{0, 4}, {1, 3}, {2, 2}, {3, 2}}) {
    const auto spans = write_set(p, p.tensor("workspace"), inputs, rank);
    EXPECT_EQ(bytes(spans, Duty::must), must * 7 * 2) << rank;
    EXPECT_EQ(bytes(spans, Duty::may), (4 - must) * 7 * 2) << rank;
    EXPECT_EQ(spans[3].begin, (1 + 3 * 9) * 2);
    EXPECT_EQ(spans[3].duty, rank < 2 ? Duty::must : Duty::may);
  }
}

}  // namespace
}  // namespace dcpcheck
