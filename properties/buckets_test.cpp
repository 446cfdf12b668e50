#include "properties/buckets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "properties/facts.hpp"
#include "properties/ranges.hpp"
#include "properties/settle.hpp"
#include "properties/test_ops.hpp"

namespace dcpcheck {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

std::string length_name(const Lengths& lengths, std::int64_t tokens) {
  return length_buckets(true)[static_cast<std::size_t>(bucket_of(lengths, tokens))];
}

TEST(LengthBuckets, AreTheEdgesOfBlocks) {
  const Lengths lengths{16, 64};
  const std::vector<std::pair<std::int64_t, std::string>> expected = {
      {0, "0"},      {1, "1"},    {2, "short"}, {15, "B-1"}, {16, "B"},    {17, "B+1"},  {18, "short"},
      {62, "short"}, {63, "v-1"}, {64, "v"},    {65, "v+1"}, {66, "long"}, {640, "long"}};
  for (const auto& [tokens, name] : expected) EXPECT_EQ(length_name(lengths, tokens), name) << tokens;
  EXPECT_EQ(length_name({1, 1}, 1), "1") << "of several names the first";
  EXPECT_EQ(length_name({1, 1}, 2), "v+1");
  EXPECT_EQ(length_name({2, 2}, 3), "v+1");
}

TEST(LengthBuckets, WhatIsDrawnFromABucketIsInIt) {
  for (const Lengths& lengths : {Lengths{}, Lengths{1, 1}, Lengths{1, 8}, Lengths{2, 6}, Lengths{64, 64}, Lengths{24, 192}}) {
    std::set<std::string> reached;
    for (int bucket = 0; bucket < static_cast<int>(length_buckets(true).size()); ++bucket) {
      for (const std::int64_t tokens : lengths_in(lengths, bucket)) {
        EXPECT_EQ(bucket_of(lengths, tokens), bucket) << tokens;
        reached.insert(length_name(lengths, tokens));
      }
    }
    const std::size_t all = length_buckets(lengths.block != 0).size();
    EXPECT_LE(reached.size(), all);
    if (lengths.block == 24 || lengths.block == 0) {
      EXPECT_EQ(reached.size(), all);
    }
  }
}

TEST(ParamBuckets, EveryValueIsInOne) {
  const Ops ops = builtin_ops_alone();
  const Param& width = *ops.at("fused_norm_rope").param("kv_lora_rank");
  const auto buckets = buckets_of(width);
  const auto name = [&](std::int64_t value) {
    const int bucket = bucket_of(width, buckets, value);
    return bucket < 0 ? "none" : buckets[static_cast<std::size_t>(bucket)].name;
  };
  EXPECT_EQ(name(1), "min");
  EXPECT_EQ(name(8192), "max");
  EXPECT_EQ(name(127), "127") << "preferred";
  EXPECT_EQ(name(64), "2^k");
  EXPECT_EQ(name(63), "2^k-1");
  EXPECT_EQ(name(65), "2^k+1");
  EXPECT_EQ(name(4097), "2^k+1") << "past those that are drawn";
  EXPECT_EQ(name(66), "other");
  EXPECT_EQ(name(7000), "other");
  for (const auto& [op_name, op] : ops) {
    for (const Param& param : op.params) {
      const auto of = buckets_of(param);
      for (std::size_t i = 0; i < of.size(); ++i) {
        EXPECT_THAT(of[i].values, Not(IsEmpty()));
        for (const ParamValue& value : of[i].values) EXPECT_EQ(bucket_of(param, of, value), static_cast<int>(i)) << param.name;
      }
      EXPECT_GE(bucket_of(param, of, param.value), 0) << param.name;
      EXPECT_GE(bucket_of(param, of, param.plainest), 0) << param.name;
    }
  }
}

TEST(RecipeFamilies, AreWithinTheContract) {
  const Ops ops = builtin_ops_alone();
  const auto recipes = [&](const char* op, const char* tensor) {
    std::vector<std::string> out;
    for (const RecipeFamily& family : recipe_families(ops.at(op), *ops.at(op).tensor(tensor))) {
      out.insert(out.end(), family.recipes.begin(), family.recipes.end());
    }
    return out;
  };
  // No contract says what becomes of codes that are divided by a zero, a negative or an infinite scale.
  for (const std::string& recipe : recipes("gather_cache", "mla_scale")) {
    EXPECT_TRUE(recipe.starts_with("around:") ||
                (recipe.starts_with("constant:") && recipe[9] != '-' && recipe != "constant:0"));
  }
  EXPECT_THAT(recipes("merge_ranks", "partial_lse"), Contains("empty"));
  EXPECT_THAT(recipes("merge_ranks", "partial_out"), Not(Contains("empty")));
  EXPECT_THAT(recipes("fused_norm_rope", "q_c"), Contains("critical"));
}

TEST(Dimensions, FollowFromTheOp) {
  const Ops ops = builtin_ops_alone();
  const auto names = [](const Op& op) {
    std::vector<std::string> out;
    for (const Dimension& dimension : dimensions_of(op)) out.push_back(dimension.name);
    return out;
  };
  const auto norm = names(ops.at("fused_norm_rope")), merge = names(ops.at("merge_chunks")),
             slots = names(ops.at("compute_slot_mapping"));
  for (const char* name :
       {"world_size", "mla.slot_mapping", "indexer.block_size", "interleave", "padding.slots", "last_position",
        "param.mla_layout", "contract.tile_scale", "layout.topk_indices", "values.kv_c", "graph"}) {
    EXPECT_THAT(norm, Contains(name));
  }
  EXPECT_THAT(norm, Not(Contains("mla.table_columns"))) << "no table is given to it";
  EXPECT_THAT(merge, Not(Contains("world_size")));
  EXPECT_THAT(merge, Not(Contains("padding.slots")));
  EXPECT_THAT(slots, Contains("full.table_columns"));
  EXPECT_THAT(slots, Contains("layout.block_table.window"));
  EXPECT_THAT(slots, Contains("full.enabled"));
  EXPECT_THAT(names(made_up_op()), Contains("store.slots"));
  for (const auto& [name, op] : ops) {
    for (const Dimension& dimension : dimensions_of(op)) {
      EXPECT_GE(dimension.buckets.size(), 2U) << dimension.name;
      const std::set<std::string> different(dimension.buckets.begin(), dimension.buckets.end());
      EXPECT_EQ(different.size(), dimension.buckets.size()) << dimension.name;
    }
  }
}

// Cases that people wrote have a bucket in each dimension that is about something they have; and are settled.
TEST(Buckets, TheCorporaHaveThem) {
  const Ops ops = builtin_ops_alone();
  std::int64_t cases = 0;
  for (const char* corpus : {"/corpora/edge", "/corpora/issue-54907"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(DCPCHECK_SOURCE_DIR) + corpus)) {
      if (entry.path().extension() != ".json") continue;
      const CaseFile file = load_case_file(ops, entry.path().string());
      const Op& op = ops.at(file.value.op);
      const auto dimensions = dimensions_of(op);
      const Plan plan = make_plan(op, file.value, std::int64_t{1} << 40);
      const Buckets buckets = buckets_of(dimensions, plan);
      ++cases;
      std::int64_t in = 0;
      for (std::size_t d = 0; d < buckets.size(); ++d) {
        EXPECT_LT(buckets[d], static_cast<int>(dimensions[d].buckets.size())) << entry.path() << " " << dimensions[d].name;
        in += buckets[d] >= 0 ? 1 : 0;
        const bool always = dimensions[d].name.starts_with("param.") || dimensions[d].name.starts_with("contract.");
        EXPECT_GE(buckets[d], always ? 0 : -1) << entry.path() << " " << dimensions[d].name;
      }
      EXPECT_GE(in * 3, static_cast<std::int64_t>(buckets.size())) << entry.path();
      Case settled = file.value;
      settle(op, settled);
      EXPECT_NO_THROW(static_cast<void>(make_plan(op, settled, std::int64_t{1} << 40))) << entry.path();
      EXPECT_EQ(buckets_of(dimensions, make_plan(op, settled, std::int64_t{1} << 40)), buckets) << entry.path();
    }
  }
  EXPECT_GT(cases, 150);
}

TEST(Coverage, CountsPairsAndBuckets) {
  const Ops ops = builtin_ops_alone();
  const Op& op = ops.at("merge_ranks");
  const auto dimensions = dimensions_of(op);
  const auto plan = [&](const char* text) {
    return make_plan(op, case_from_json(ops, json::parse(text, "case"), "case"), std::int64_t{1} << 30);
  };
  const Plan one = plan(R"({"op":"merge_ranks","geometry":{"batch":[{"uncached":1}]}})");
  const Plan two = plan(R"({"op":"merge_ranks","geometry":{"batch":[{"uncached":1}],"tp":2,"dcp":{"world_size":2}}})");
  PairSet feasible(sizes_of(dimensions));
  feasible.add(buckets_of(dimensions, one));
  Coverage coverage(dimensions, feasible);
  EXPECT_EQ(coverage.met(), 0);
  EXPECT_EQ(static_cast<std::int64_t>(coverage.missing().size()), coverage.feasible());
  EXPECT_THAT(coverage.missing(), Contains("world_size 1 with graph off"));
  coverage.add(two);
  EXPECT_LT(coverage.met(), coverage.feasible());
  EXPECT_GT(coverage.unforeseen(), 0) << "pairs with world_size 2";
  coverage.add(one);
  coverage.add(one);
  EXPECT_EQ(coverage.met(), coverage.feasible());
  EXPECT_THAT(coverage.missing(), IsEmpty());
  EXPECT_EQ(coverage.in_bucket("world_size", "1"), 2);
  EXPECT_EQ(coverage.in_bucket("world_size", "2"), 1);
  EXPECT_EQ(coverage.in_bucket("world_size", "7"), 0);
  const json::Value report = coverage.to_json();
  EXPECT_EQ(*report.find("cases"), json::Value(3));
  EXPECT_EQ(*report.find("pairs")->find("met"), *report.find("pairs")->find("feasible"));
  EXPECT_EQ(*report.find("buckets")->find("world_size")->find("2"), json::Value(1));
}

TEST(NamesIn, ExpressionsGiveTheirNames) {
  EXPECT_THAT(names_in(Expression("mode != 'wide' || (width == 48 && option.rounding == 'up')")),
              ElementsAre("mode", "width", "option.rounding"));
  EXPECT_THAT(names_in(Expression("ceil_div(T, 2) + max(W, 3)")), ElementsAre("ceil_div", "T", "max", "W"));
}

}  // namespace
}  // namespace dcpcheck
