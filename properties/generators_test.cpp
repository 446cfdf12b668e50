#include "properties/generators.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <set>

#include "harness/core/case_rules.hpp"
#include "harness/core/error.hpp"
#include "harness/core/inputs.hpp"
#include "properties/facts.hpp"
#include "properties/shrink.hpp"
#include "properties/test_ops.hpp"

namespace dcpcheck {
namespace {

using testing::Ge;
using testing::HasSubstr;
using testing::Le;

class Generators : public testing::TestWithParam<std::string> {
 protected:
  const Ops ops_ = builtin_ops_alone();
  const Op& op_ = ops_.at(GetParam());

  Plan plan_of(const Case& value) const { return make_plan(op_, value, kTestMemory); }
};

TEST_P(Generators, ACaseDependsOnItsSeedAndIndexAlone) {
  const Generator generator(op_, in_a_hurry());
  const auto id = [&](std::uint64_t seed, std::uint64_t index) { return case_id(op_, generator(seed, index)); };
  std::vector<std::string> forwards;
  for (std::uint64_t index = 0; index < 80; ++index) forwards.push_back(id(7, index));
  for (std::uint64_t index = 80; index-- > 0;) EXPECT_EQ(id(7, index), forwards[index]);
  const Generator another(op_, in_a_hurry());
  for (const std::uint64_t index : {3U, 63U, 20U, 3U}) EXPECT_EQ(case_id(op_, another(7, index)), forwards[index]);
  EXPECT_EQ(case_id(op_, another(7, 1'000'000)), id(7, 1'000'000));

  std::set<std::string> different(forwards.begin(), forwards.end());
  EXPECT_EQ(different.size(), forwards.size());
  for (std::uint64_t index = 0; index < 80; ++index) EXPECT_NE(id(8, index), forwards[index]);
}

// Also what a file keeps of a case is the whole of it.
TEST_P(Generators, EveryCaseIsValidAndSoIsEachSmallerOne) {
  const Generator generator(op_, in_a_hurry());
  const bool sweep = std::getenv("DCPCHECK_SWEEP") != nullptr;
  const std::uint64_t cases = (sweep ? 100'000 : 20'000) / ops_.size() + 1;
  const std::uint64_t shrunk_each = sweep ? 40 : 100;  // of so many generated ones, one is shrunk
  std::uint64_t tried = 0;
  const auto check = [&](const Case& value, const char* what) {
    ++tried;
    const json::Value document = case_to_json(op_, value);
    ASSERT_NO_THROW(static_cast<void>(plan_of(value))) << what << " " << json::dump(document);
    ASSERT_EQ(case_from_json(ops_, document, "case"), value) << what << " " << json::dump(document);
  };
  for (std::uint64_t index = 0; tried < cases; ++index) {
    const Case value = generator(20'000, index);
    ASSERT_NO_FATAL_FAILURE(check(value, "generated"));
    if (index % shrunk_each != 0) continue;
    for (const Case& smaller : shrinks(op_, value, kTestMemory)) {
      ASSERT_LT(size_of_case(op_, smaller), size_of_case(op_, value));
      ASSERT_NO_FATAL_FAILURE(check(smaller, "shrunk"));
    }
  }
  RecordProperty("cases", static_cast<int>(tried));
}

TEST_P(Generators, AllFeasiblePairsAreMetWithin1500Cases) {
  const Generator generator(op_);
  ASSERT_LE(generator.covering_cases(), 1500U);
  const PairSet& feasible = generator.covering().met;
  for (const std::uint64_t seed : {1U, 54907U}) {
    Coverage coverage(generator.dimensions(), feasible);
    for (std::uint64_t index = 0; index < 1500; ++index) coverage.add(plan_of(generator(seed, index)));
    EXPECT_EQ(coverage.met(), coverage.feasible()) << testing::PrintToString(coverage.missing());
    // What was taken to be infeasible is so, but for a pair in five hundred at the most.
    EXPECT_LE(coverage.unforeseen() * 500, coverage.feasible());
    if (seed == 1) {
      std::cout << GetParam() << ": " << generator.dimensions().size() << " dimensions, " << generator.covering().rows.size()
                << " rows, " << coverage.met() << " of " << coverage.feasible() << " pairs met, "
                << generator.covering().infeasible.size() << " infeasible, " << coverage.unforeseen() << " unforeseen\n";
    }
  }
  // It is the array that does it: as many cases that are free do not.
  Coverage free(generator.dimensions(), feasible);
  for (std::uint64_t index = 1500; index < 3000; ++index) free.add(plan_of(generator(1, index)));
  EXPECT_LT(free.met(), free.feasible());
  EXPECT_FALSE(free.missing().empty());
}

TEST_P(Generators, CasesThatAreFreeHitTheBoundaries) {
  const Generator generator(op_, in_a_hurry());
  const PairSet& feasible = generator.covering().met;
  Coverage coverage(generator.dimensions(), feasible);
  for (std::uint64_t index = 1'000'000; index < 1'003'000; ++index) coverage.add(plan_of(generator(5, index)));
  std::string table;
  for (const Dimension& dimension : generator.dimensions()) {
    const bool boundary = dimension.name.starts_with("first.") || dimension.name.starts_with("chunk.") ||
                          dimension.name.starts_with("padding.") || dimension.name.ends_with("table_columns") ||
                          dimension.name == "owners" || dimension.name == "last_position" || dimension.name == "interleave" ||
                          dimension.name == "live_tokens" || dimension.name == "requests" || dimension.name == "world_size" ||
                          dimension.name == "max_batched_tokens" || dimension.name.starts_with("param.");
    if (!boundary) continue;
    const auto d = static_cast<int>(&dimension - generator.dimensions().data());
    for (std::size_t b = 0; b < dimension.buckets.size(); ++b) {
      // A bucket that no case is in has no feasible pair; graph is in every case.
      const auto graph = static_cast<int>(generator.dimensions().size()) - 1;
      if (!feasible.contains(d, static_cast<int>(b), graph, 0)) continue;
      const std::int64_t cases = coverage.in_bucket(dimension.name, dimension.buckets[b]);
      EXPECT_GE(cases, 4) << dimension.name << " " << dimension.buckets[b];
      table += " " + dimension.name + "=" + dimension.buckets[b] + ":" + std::to_string(cases);
    }
  }
  std::cout << GetParam() << " in 3000 free cases:" << table << "\n";
}

// 65,535, 65,536 and 65,537 rows, each in one of 192 cases.
TEST_P(Generators, SomeLaunchesAreLarge) {
  if (runs_pipeline(op_)) GTEST_SKIP() << "a pipeline has few tokens";
  const Generator generator(op_, without_rows());
  std::map<std::int64_t, int> large;
  std::int64_t others = 0;
  for (std::uint64_t index = 0; index < 1152; ++index) {
    const Case value = generator(11, index);
    std::int64_t rows = 0;
    for (const Request& request : value.geometry.batch) {
      rows += launches_tokens(op_) ? request.uncached : request.cached;
    }
    if (rows >= 65535) {
      ++large[rows];
      EXPECT_EQ(index % 64, 63U);
      EXPECT_LE(cost_of(plan_of(value)), 3 * GenerateOptions{}.large_cost);
    } else {
      others = std::max(others, rows);
    }
  }
  for (const std::int64_t rows : {65535, 65536, 65537}) EXPECT_EQ(large[rows], 6) << rows;
  EXPECT_LT(others, 30'000);
}

// One case in 64, of ops that write a cache; most of what it writes lies past 2^32 bytes.
TEST_P(Generators, SomeCachesAreSparse) {
  const std::vector<std::string> groups = groups_of(op_);
  if (std::none_of(groups.begin(), groups.end(), [&](const std::string& group) { return may_be_sparse(op_, group); }))
    GTEST_SKIP() << op_.name << " writes no cache";
  const Generator generator(op_, without_rows());
  int sparse = 0, others = 0;
  std::int64_t records = 0, past = 0;
  for (std::uint64_t draw = 0; draw < 60; ++draw) {
    const std::uint64_t index = draw / 3 * 64 + 60 + draw % 3;
    const Case value = generator(12, index);
    const auto& caches = value.geometry.caches;
    if (std::none_of(caches.begin(), caches.end(), [](const auto& group) { return group.second.sparse; })) continue;
    ++(index % 64 == 62 ? sparse : others);
    const Plan plan = plan_of(value);
    for (const TensorPlan& tensor : plan.tensors) {
      if (!tensor.cache.sparse || tensor.slot_mapping.empty()) continue;
      for (const std::int64_t slot : slots_of(plan, tensor.cache.group, 0)) {
        records += slot >= 0 ? 1 : 0;
        past += slot >= 0 && tensor.cache.address(slot, tensor.cache.fields.front()) >> 32 != 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(sparse, 15) << "of 20";
  EXPECT_LT(others, 5);
  EXPECT_GT(records, 100);
  EXPECT_GT(past, records / 3);
}

TEST_P(Generators, CasesAreSmallAndDiffer) {
  const Generator generator(op_, without_rows());
  const int count = 1000;
  std::vector<std::int64_t> costs;
  int graphs = 0, dense = 0, own_recipes = 0, empty = 0, several_ranks = 0, special = 0;
  for (std::uint64_t index = 0; index < count; ++index) {
    const std::uint64_t free = 2'000'000 + index + index / 63;  // over the large ones
    const Case value = generator(3, free);
    const Plan plan = plan_of(value);
    if (free % 64 < 62) costs.push_back(cost_of(plan));
    graphs += value.graph ? 1 : 0;
    dense += value.layout.empty() ? 1 : 0;
    own_recipes += value.values.empty() ? 1 : 0;
    empty += value.geometry.batch.empty() || (launches_tokens(op_) && plan.tokens == 0) ? 1 : 0;
    several_ranks += value.geometry.tp > 1 ? 1 : 0;
    special += std::any_of(value.values.begin(), value.values.end(),
                           [](const auto& one) { return one.second == "special" || one.second == "nan"; })
                   ? 1
                   : 0;
  }
  std::sort(costs.begin(), costs.end());
  EXPECT_LE(costs.back(), 3 * GenerateOptions{}.cost);
  EXPECT_LE(costs[costs.size() / 2], GenerateOptions{}.cost * 3 / 4) << "the middle case costs as much as the most expensive";
  EXPECT_THAT(graphs, testing::AllOf(Ge(count / 20), Le(count / 3)));
  EXPECT_THAT(dense, Ge(count / 3));
  EXPECT_THAT(own_recipes, Ge(count / 3));
  EXPECT_THAT(empty, Le(count / 5));
  if (!runs_pipeline(op_)) {  // which must launch tokens, and has no strides of its own
    EXPECT_THAT(empty, Ge(count / 200));
    EXPECT_THAT(dense, Le(count * 9 / 10));
  }
  EXPECT_THAT(several_ranks, testing::AllOf(Ge(count / 5), Le(count * 9 / 10)));
  EXPECT_LE(special, count / 3) << "NaNs hide what else is wrong";
}

INSTANTIATE_TEST_SUITE_P(Ops, Generators, testing::ValuesIn(generated_op_names()),
                         [](const testing::TestParamInfo<std::string>& one) { return one.param; });

class GeneratorOptions : public testing::Test {
 protected:
  const Ops ops_ = builtin_ops_alone();
};

TEST_F(GeneratorOptions, OnlyTheBucketsThatAreAllowed) {
  const Op& op = ops_.at("gather_cache");
  GenerateOptions options = in_a_hurry();
  options.only = {{"param.mla_layout", {"fp8", "bf16"}},
                  {"graph", {"off"}},
                  {"mla.slot_mapping", {"replicated"}},
                  {"world_size", {"2", "4"}}};
  const Generator generator(op, options);
  std::set<std::string> layouts;
  std::set<std::int64_t> worlds;
  for (std::uint64_t index = 0; index < 500; ++index) {
    const Case value = generator(1, index);
    layouts.insert(value.choice("mla_layout"));
    worlds.insert(value.geometry.world_size);
    EXPECT_FALSE(value.graph);
    EXPECT_EQ(value.geometry.caches.at("mla").slot_mapping, "replicated");
  }
  EXPECT_EQ(layouts, (std::set<std::string>{"bf16", "fp8"}));
  EXPECT_EQ(worlds, (std::set<std::int64_t>{2, 4}));
}

std::string refusal(const Op& op, const GenerateOptions& options) {
  try {
    const Generator generator(op, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_F(GeneratorOptions, WhatCannotBeIsRefused) {
  const Op& op = ops_.at("gather_cache");
  GenerateOptions options = in_a_hurry();
  options.only = {{"params.mla_layout", {"fp8"}}};
  EXPECT_THAT(refusal(op, options), HasSubstr("no dimension \"params.mla_layout\""));
  options.only = {{"param.mla_layout", {"fp4"}}};
  EXPECT_THAT(refusal(op, options), HasSubstr("\"fp4\" is no bucket"));
  options.only = {{"mla.slot_mapping", {"absent"}}};  // which the op needs
  EXPECT_THAT(refusal(op, options), HasSubstr("no case of gather_cache was found"));
  EXPECT_THAT(refusal(made_up_op(R"([{"that": "width > 3 && width < 3", "say": "never"}])"), {}), HasSubstr("no plain case"));
}

TEST(AnOpOfTheUsers, HasCasesInAllItsPairs) {
  const Op op = made_up_op();
  const Generator generator(op);
  Coverage coverage(generator.dimensions(), generator.covering().met);
  std::int64_t wide = 0, stored = 0, plainest = 0;
  for (std::uint64_t index = 0; index < 600; ++index) {
    const Case value = generator(1, index);
    coverage.add(make_plan(op, value, kTestMemory));
    wide += value.choice("mode") == "wide" ? 1 : 0;
    stored += value.geometry.caches.contains("store") ? 1 : 0;
    plainest += value.integer("width") == 3 ? 1 : 0;
    EXPECT_EQ(value.integer("width") % 3, 0);
  }
  EXPECT_EQ(coverage.met(), coverage.feasible()) << testing::PrintToString(coverage.missing());
  EXPECT_GE(wide, 30) << "a rule that is met by one width in a hundred";
  EXPECT_GE(stored, 100);
  EXPECT_LE(plainest, 300);
  EXPECT_GE(coverage.in_bucket("store.slot_mapping", "explicit"), 20);
  EXPECT_EQ(coverage.in_bucket("param.width", "2^k"), 0) << "no power of two is a multiple of 3";
}

TEST(AnOpOfTheUsers, APipelineHasFewTokens) {
  Op op = made_up_op();
  op.pipeline = {"fused_norm_rope"};
  const Generator generator(op, in_a_hurry());
  for (std::uint64_t index = 0; index < 500; ++index) {
    const Case value = generator(1, index);
    EXPECT_LE(value.geometry.live_tokens() * value.geometry.tp, 500);
  }
}

TEST(PlainCase, IsTheDefaultWithOneToken) {
  const Ops ops = builtin_ops_alone();
  for (const auto& [name, op] : ops) {
    const Case plain = plain_case(op);
    EXPECT_NO_THROW(static_cast<void>(make_plan(op, plain, kTestMemory))) << name;
    EXPECT_EQ(plain.geometry.batch.size(), 1U);
    EXPECT_LE(plain.geometry.caches.size(), 1U);
    for (const Param& param : op.params) EXPECT_EQ(plain.params.at(param.name), param.value) << param.name;
  }
}

}  // namespace
}  // namespace dcpcheck
