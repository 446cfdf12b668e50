#include "properties/shrink.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <functional>
#include <optional>
#include <sstream>

#include "harness/core/error.hpp"
#include "harness/core/inputs.hpp"
#include "properties/arbitrary_case.hpp"
#include "properties/test_ops.hpp"

namespace dcpcheck {
namespace {

using testing::ElementsAre;

using Wanted = std::function<bool(const Case&)>;

// Down the tree that RapidCheck walks.
Case least_of(const rc::Shrinkable<Case>& from, const Wanted& wanted) {
  for (auto smaller = from.shrinks(); auto one = smaller.next();) {
    if (wanted(one->value())) return least_of(*one, wanted);
  }
  return from.value();
}

class Shrinking : public testing::Test {
 protected:
  const Ops ops_ = builtin_ops_alone();

  const Op& op(const std::string& name) const { return ops_.at(name); }
  Case read(const std::string& text) const { return case_from_json(ops_, json::parse(text, "case"), "case"); }
  std::string text(const Case& value) const { return json::canonical(case_to_json(op(value.op), value)); }
  bool valid(const Case& value) const {
    try {
      static_cast<void>(make_plan(op(value.op), value, kTestMemory));
    } catch (const InputError&) {
      return false;
    }
    return true;
  }
  // Down while `wanted` holds, the first that does at each step.
  Case least(Case value, const Wanted& wanted) const {
    for (bool smaller = true; smaller;) {
      smaller = false;
      for (Case& one : shrinks(op(value.op), value)) {
        if (!wanted(one)) continue;
        value = std::move(one);
        smaller = true;
        break;
      }
    }
    return value;
  }
  // Of `count` generated cases, the least of those that are wanted; each starts somewhere else.
  std::vector<std::string> least_of_generated(const std::string& name, const Wanted& wanted, std::size_t count) const {
    const Generator generator(op(name), without_rows());
    std::vector<std::string> out;
    for (std::uint64_t index = 0; out.size() < count; ++index) {
      if (index > 5000) ADD_FAILURE() << "too few generated cases are wanted";
      if (index > 5000) break;
      const Case value = generator(9, 100'000 + index);
      if (wanted(value)) out.push_back(text(least(value, wanted)));
    }
    return out;
  }
};

TEST_F(Shrinking, ASparseCacheBecomesAPlainOneWhereThatIsEnough) {
  const Case value = read(R"({"op": "fused_norm_rope", "geometry": {"batch": [{"uncached": 9}], "caches": {
    "mla": {"block_size": 4, "spare_blocks": 60000000, "sparse": true},
    "indexer": {"block_size": 4, "spare_blocks": 60000000, "sparse": true, "slot_mapping": "same"}}}})");
  const auto has_both = [&](const Case& one) { return valid(one) && one.geometry.caches.size() == 2; };
  for (const auto& [name, group] : least(value, has_both).geometry.caches) {
    EXPECT_FALSE(group.sparse) << name;
    EXPECT_LE(group.spare_blocks, CacheGroup().spare_blocks) << name;
  }
  const Case past = least(value, [&](const Case& one) {
    return has_both(one) && one.geometry.caches.at("mla").spare_blocks * one.geometry.caches.at("mla").block_size >= 1 << 24;
  });
  EXPECT_TRUE(past.geometry.caches.at("mla").sparse) << "more blocks than a plain cache may have";
  EXPECT_LT(past.geometry.caches.at("mla").spare_blocks, 30'000'000);
}

TEST_F(Shrinking, EndsAtTheLeastCaseWhereverItStarts) {
  const Wanted wanted = [](const Case& value) { return value.geometry.world_size > 1 && value.geometry.tokens() >= 3; };
  EXPECT_THAT(least_of_generated("merge_ranks", wanted, 8),
              testing::Each(R"({"geometry":{"batch":[{"uncached":3}],"dcp":{"world_size":2},"tp":2},"op":"merge_ranks",)"
                            R"("params":{"heads":1,"v_head_dim":1},"seed":"0000000000000000"})"));
}

TEST_F(Shrinking, ANegativeSlotOnSomeRank) {
  const Wanted wanted = [&](const Case& value) {
    if (value.geometry.world_size == 1) return false;
    const Plan plan = make_plan(op(value.op), value, kTestMemory);
    for (const auto& [name, group] : value.geometry.caches) {
      for (std::int64_t rank = 0; rank < value.geometry.tp; ++rank) {
        const auto slots = slots_of(plan, name, rank);
        if (std::any_of(slots.begin(), slots.begin() + plan.live, [](std::int64_t slot) { return slot < 0; })) return true;
      }
    }
    return false;
  };
  for (const std::string& found : least_of_generated("compute_slot_mapping", wanted, 8)) {
    const Case value = read(found);
    ASSERT_EQ(value.geometry.batch.size(), 1U) << found;
    EXPECT_EQ(value.geometry.batch.front(), (Request{0, 1})) << found;
    EXPECT_EQ(value.geometry.tp, 2) << found;
    EXPECT_EQ(value.geometry.padding, Padding{}) << found;
    ASSERT_EQ(value.geometry.caches.size(), 1U) << found;
    EXPECT_EQ(value.geometry.caches.begin()->second.block_size, 1) << found;
    EXPECT_TRUE(value.layout.empty() && !value.graph) << found;
    EXPECT_EQ(value.option("tail"), "query_end") << found;
  }
}

// Widths, a layout, a recipe and an option, each as near to its boundary as it goes.
TEST_F(Shrinking, StopsAtBoundariesInTheMiddle) {
  const Wanted wanted = [](const Case& value) {
    const auto layout = value.layout.find("q_c");
    return value.integer("kv_lora_rank") >= 129 && value.integer("qk_rope_head_dim") > 5 && layout != value.layout.end() &&
           layout->second.offset >= 2 && value.option("nan") == "clamp" && value.geometry.padding.tokens > 0;
  };
  const Case start = read(R"({"op":"fused_norm_rope","seed":"00000000deadbeef","launch":{"graph":true},
    "geometry":{"batch":[{"cached":40,"uncached":17},{"uncached":9}],"padding":{"tokens":7,"slots":"int64_min","values":"zero"},
                "max_batched_tokens":100,"tp":8,"dcp":{"world_size":4,"interleave":4},
                "caches":{"mla":{"block_size":16,"kernel_block_size":4,"block_stride_padding":64},"indexer":{"block_size":16,
                          "kernel_block_size":4,"slot_mapping":"same"}}},
    "params":{"kv_lora_rank":512,"qk_rope_head_dim":64,"mla_layout":"fp8_ds_mla","q_lora_rank":1536,"q_eps":0.001},
    "contract":{"nan":"clamp","tile_scale":"pow2"},"layout":{"q_c":{"stride":3000,"offset":64},"kv_c":{"stride":700}},
    "values":{"kv_c":"critical","q_weight":"zero"}})");
  ASSERT_TRUE(wanted(start));
  EXPECT_EQ(
      text(least(start, wanted)),
      R"({"contract":{"nan":"clamp"},"geometry":{"padding":{"tokens":1}},"layout":{"q_c":{"offset":2}},"op":"fused_norm_rope",)"
      R"("params":{"index_head_dim":1,"index_rope_dim":0,"index_topk":1,"indexer":false,"k_pe_out":false,"kv_c_out":false,)"
      R"("kv_lora_rank":129,"q_lora_rank":1,"qk_rope_head_dim":6},"seed":"0000000000000000"})");
}

// Which request a listed slot belongs to is kept when others go.
TEST_F(Shrinking, ListedSlotsGoWithTheirTokens) {
  const Case start = read(R"({"op":"fused_norm_rope","geometry":{"batch":[{"uncached":2},{"uncached":3},{"uncached":1}],
    "padding":{"tokens":1},"caches":{"mla":{"block_size":4,"slot_mapping":"explicit","slots":[[1,-1,4,-2,6,7,-4]]}}}})");
  const Wanted wanted = [](const Case& value) {
    const auto mla = value.geometry.caches.find("mla");
    if (mla == value.geometry.caches.end() || mla->second.slots.empty()) return false;
    const auto& slots = mla->second.slots.front();
    return std::find(slots.begin(), slots.end(), 6) != slots.end();
  };
  const Case end = least(start, wanted);
  EXPECT_THAT(end.geometry.batch, ElementsAre(Request{0, 1}));
  EXPECT_THAT(end.geometry.caches.at("mla").slots, ElementsAre(ElementsAre(6)));
}

TEST_F(Shrinking, StepsThatWouldBreakARuleAreLeftOut) {
  const Op& norm = op("fused_norm_rope");
  const Case start = read(R"({"op":"fused_norm_rope","geometry":{"batch":[{"uncached":3}],"caches":{"mla":{"block_size":4}}},
    "params":{"mla_layout":"fp8_ds_mla","max_position":256}})");
  const auto narrow = [](const Case& value) {
    return value.choice("mla_layout") == "fp8_ds_mla" && value.integer("kv_lora_rank") != 512;
  };
  const std::vector<Case> proposals = shrink_proposals(norm, start);
  ASSERT_TRUE(std::any_of(proposals.begin(), proposals.end(), narrow))
      << "a record of 656 bytes with another width is proposed";
  const std::vector<Case> kept = shrinks(norm, start);
  EXPECT_FALSE(std::any_of(kept.begin(), kept.end(), narrow));
  for (const Case& one : kept) EXPECT_TRUE(valid(one)) << text(one);
  const auto invalid = std::count_if(proposals.begin(), proposals.end(), [&](const Case& one) { return !valid(one); });
  EXPECT_GE(invalid, 5);
  EXPECT_LT(kept.size(), proposals.size());
}

TEST_F(Shrinking, MemoryIsABoundOfEachStep) {
  // Going to the plainest rope table makes it longer: 8192 rows.
  const Case start = read(R"({"op":"fused_norm_rope","geometry":{"batch":[{"uncached":3}]},"params":{"max_position":256}})");
  const auto long_table = [](const Case& value) { return value.integer("max_position") == 8192; };
  const auto all = shrinks(op("fused_norm_rope"), start), bounded = shrinks(op("fused_norm_rope"), start, 1 << 20);
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), long_table));
  EXPECT_TRUE(std::any_of(bounded.begin(), bounded.end(), [&](const Case& one) { return !long_table(one); }));
  for (const Case& one : bounded) EXPECT_LE(make_plan(op("fused_norm_rope"), one, kTestMemory).memory, 1 << 20);
}

TEST_F(Shrinking, StepsAreOrderedAndStrictlySmaller) {
  for (const auto& [name, op] : ops_) {
    const Generator generator(op, without_rows());
    for (std::uint64_t index = 0; index < 6; ++index) {
      const Case value = generator(4, index);
      std::uint64_t before = 0;
      const auto smaller = shrinks(op, value);
      for (const Case& one : smaller) {
        const std::uint64_t size = size_of_case(op, one);
        EXPECT_LT(size, size_of_case(op, value));
        EXPECT_GE(size, before);
        before = size;
      }
      EXPECT_EQ(shrinks(op, value), smaller);
    }
  }
}

TEST_F(Shrinking, TheLeastCaseHasNoSmallerOne) {
  const Case least_case =
      least(read(R"({"op":"merge_chunks","geometry":{"batch":[{"uncached":40}],"tp":2}})"), [](const Case&) { return true; });
  EXPECT_THAT(shrinks(op("merge_chunks"), least_case), testing::IsEmpty());
  EXPECT_EQ(text(least_case), R"({"op":"merge_chunks","params":{"heads":1,"v_head_dim":1},"seed":"0000000000000000"})");
}

TEST_F(Shrinking, ACaseOfAFileShrinksAsAGeneratedOne) {
  const CaseFile file = load_case_file(ops_, std::string(DCPCHECK_SOURCE_DIR) + "/corpora/edge/fp8-ds-mla-divides.json");
  const Case end = least(file.value, [](const Case& value) { return value.choice("mla_layout") == "fp8_ds_mla"; });
  EXPECT_EQ(end.integer("kv_lora_rank"), 512);
  EXPECT_EQ(end.integer("qk_rope_head_dim"), 64);
  EXPECT_EQ(end.integer("q_lora_rank"), 1);
  EXPECT_TRUE(end.geometry.batch.empty() && end.geometry.caches.empty());
}

TEST_F(Shrinking, RapidCheckGoesTheSameWay) {
  const auto generator = std::make_shared<const Generator>(op("merge_chunks"), in_a_hurry());
  const Wanted wanted = [](const Case& value) { return value.geometry.tokens() >= 5 && value.integer("heads") >= 3; };
  int tried = 0;
  for (std::uint64_t seed = 0; tried < 5; ++seed) {
    const rc::Shrinkable<Case> drawn = arbitrary_case(generator)(rc::Random(seed), 100);
    EXPECT_EQ(drawn.value(), arbitrary_case(generator)(rc::Random(seed), 0).value()) << "a case depends on no size";
    if (!wanted(drawn.value())) continue;
    ++tried;
    EXPECT_EQ(text(least_of(drawn, wanted)), text(least(drawn.value(), wanted)));
  }
}

TEST_F(Shrinking, ACounterexampleIsShownAsACase) {
  const Generator generator(op("dense_prefill"), without_rows());
  const Case value = generator(1, 5);
  std::ostringstream shown;
  showValue(value, shown);
  EXPECT_EQ(read(shown.str()), value) << shown.str();
}

}  // namespace
}  // namespace dcpcheck
