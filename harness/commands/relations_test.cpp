// token_relations, on results that no kernel made: each of these differs from a good pair in one way.
#include "harness/commands/relations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dcpcheck {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using Ids = std::vector<std::vector<std::int32_t>>;

// As if the digest of the ids.
std::string digest_of(const Ids& ids) {
  std::string digest = "of";
  for (const auto& request : ids) {
    digest += "/";
    for (const std::int32_t id : request) digest += std::to_string(id) + ",";
  }
  return digest;
}

// A passing run of `generate` in which every choice is sure.
Result run_of(std::int64_t world_size, Ids ids) {
  Result result;
  result.name = "tokens-512-dcp" + std::to_string(world_size);
  result.op = "generate";
  result.kernel = "builtin:generate";
  result.backend = "host";
  result.world_size = world_size;
  Tokens tokens;
  tokens.digest = digest_of(ids);
  std::size_t steps = 0;
  for (const auto& request : ids) steps = std::max(steps, request.size());
  for (std::size_t step = 0; step < steps; ++step) tokens.steps.push_back({"decode." + std::to_string(step), true, 2.0, 0.5});
  tokens.ids = std::move(ids);
  result.tokens = std::move(tokens);
  return result;
}

Relation only_relation(const std::vector<Result>& results) {
  const std::vector<Relation> relations = token_relations(results);
  if (relations.size() == 1) return relations.front();
  ADD_FAILURE() << relations.size() << " relations";
  return {};
}

void narrow(Result& result, std::size_t step, double margin = 0.25) { result.tokens->steps.at(step).margin = margin; }

TEST(TokenRelations, EqualIdsAreEqual) {
  const Ids ids{{17, 203, 5}, {1, 2, 3}};
  const Relation relation = only_relation({run_of(1, ids), run_of(4, ids)});
  EXPECT_EQ(relation.scenario, "tokens-512");
  EXPECT_EQ(relation.quantity, "tokens");
  EXPECT_EQ(relation.fault, "");
  EXPECT_EQ(relation.backend, "host");
  EXPECT_EQ(relation.dcp1, digest_of(ids));
  EXPECT_THAT(relation.dcp4, ElementsAre(digest_of(ids)));
  EXPECT_EQ(relation.dcp1_ids, ids);
  EXPECT_EQ(relation.dcp4_ids, ids);
  EXPECT_TRUE(relation.equal);
  EXPECT_TRUE(relation.expected_equal);
  EXPECT_EQ(relation.inconclusive_at, std::nullopt);
  EXPECT_TRUE(relation.as_expected());
}

TEST(TokenRelations, OneOtherIdIsADifference) {
  for (const Ids& other : {Ids{{9, 203, 5}, {1, 2, 3}}, Ids{{17, 203, 5}, {1, 2, 4}}, Ids{{17, 203}, {1, 2, 3}},
                           Ids{{17, 203, 5}}, Ids{{17, 203, 5}, {1, 2, 3, 4}}, Ids{{1, 2, 3}, {17, 203, 5}}, Ids{{}, {}}}) {
    const Relation relation = only_relation({run_of(1, {{17, 203, 5}, {1, 2, 3}}), run_of(4, other)});
    EXPECT_FALSE(relation.equal) << digest_of(other);
    EXPECT_FALSE(relation.as_expected()) << digest_of(other);
    EXPECT_EQ(relation.dcp4_ids, other);
    EXPECT_THAT(relation.dcp4, ElementsAre(digest_of(other)));
  }
}

TEST(TokenRelations, OnlyRunsOfTheSameAreCompared) {
  const Ids ids{{1, 2}};
  const auto relations_with = [&](auto edit) {
    Result other = run_of(4, ids);
    edit(other);
    return token_relations({run_of(1, ids), other});
  };
  EXPECT_THAT(relations_with([](Result&) {}), SizeIs(1));
  EXPECT_THAT(relations_with([](Result& other) { other.name = "tokens-1536-dcp4"; }), IsEmpty());
  EXPECT_THAT(relations_with([](Result& other) { other.op = "another"; }), IsEmpty());
  EXPECT_THAT(relations_with([](Result& other) { other.kernel += "@k_gated"; }), IsEmpty());
  EXPECT_THAT(relations_with([](Result& other) { other.backend = "cuda"; }), IsEmpty());
  EXPECT_THAT(relations_with([](Result& other) { other.world_size = 2; }), IsEmpty());
  EXPECT_THAT(relations_with([](Result& other) { other.name = "tokens-512-dcp2"; }), IsEmpty());
  EXPECT_THAT(relations_with([](Result& other) { other.tokens.reset(); }), IsEmpty());
  EXPECT_THAT(token_relations({run_of(4, ids), run_of(4, ids)}), IsEmpty());
  EXPECT_THAT(token_relations({run_of(1, ids), run_of(1, ids)}), IsEmpty());
}

TEST(TokenRelations, NoTokensAtAllVouchForNothing) {
  EXPECT_THAT(token_relations({run_of(1, {{}, {}}), run_of(4, {{}, {}})}), IsEmpty());
  EXPECT_THAT(token_relations({run_of(1, {}), run_of(4, {})}), IsEmpty());
  EXPECT_FALSE(only_relation({run_of(1, {{}}), run_of(4, {{1}})}).equal);
}

// Each finds its own, whatever stands between.
TEST(TokenRelations, PairsAreKeptApart) {
  std::vector<Result> results;
  for (const std::string kernel : {"builtin:generate", "builtin:generate@k_gated"})
    for (const std::int64_t world_size : {4, 1})
      for (const std::string scenario : {"tokens-512", "tokens-1536"}) {
        const bool broken = kernel.ends_with("k_gated") && world_size == 4;
        Result result = run_of(world_size, {{scenario == "tokens-512" ? 1 : 2, broken ? 7 : 8}});
        result.name = scenario + "-dcp" + std::to_string(world_size);
        result.kernel = kernel;
        result.fault = kernel.ends_with("k_gated") ? "k_gated" : "";
        results.push_back(result);
      }
  const std::vector<Relation> relations = token_relations(results);
  ASSERT_THAT(relations, SizeIs(4));
  for (const Relation& relation : relations) {
    const std::int32_t first = relation.scenario == "tokens-512" ? 1 : 2;
    EXPECT_EQ(relation.dcp1_ids, (Ids{{first, 8}})) << relation.scenario << " " << relation.fault;
    EXPECT_EQ(relation.dcp4_ids, (Ids{{first, relation.fault.empty() ? 8 : 7}})) << relation.scenario << " " << relation.fault;
    EXPECT_EQ(relation.equal, relation.fault.empty()) << relation.scenario << " " << relation.fault;
  }
}

// A choice at or before the step at which the ids part, in either run.
TEST(TokenRelations, ANarrowChoiceLeavesOpenWhatFollows) {
  const Ids ids{{1, 2, 3, 4}, {5, 6, 7, 8}}, parted{{1, 2, 3, 9}, {5, 6, 10, 8}};  // at step 2, by the second request
  for (const bool in_dcp1 : {true, false}) {
    for (std::size_t step = 0; step < 4; ++step) {
      Result alone = run_of(1, ids), split = run_of(4, parted);
      narrow(in_dcp1 ? alone : split, step);
      const Relation relation = only_relation({alone, split});
      EXPECT_FALSE(relation.equal);
      EXPECT_FALSE(relation.as_expected());
      EXPECT_EQ(relation.inconclusive_at, step <= 2 ? std::optional(static_cast<std::int64_t>(step)) : std::nullopt)
          << in_dcp1 << " " << step;
    }
  }
  Result alone = run_of(1, ids), split = run_of(4, parted);
  narrow(alone, 2);
  narrow(split, 1);
  EXPECT_EQ(only_relation({alone, split}).inconclusive_at, 1);
  narrow(alone, 0);
  EXPECT_EQ(only_relation({alone, split}).inconclusive_at, 0);
}

TEST(TokenRelations, NarrowIsAMarginThatIsKnownAndNotOverItsBound) {
  const auto at = [](double margin, bool known) {
    Result alone = run_of(1, {{1, 2}}), split = run_of(4, {{1, 3}});
    narrow(alone, 1, margin);
    alone.tokens->steps[1].known = known;
    return only_relation({alone, split}).inconclusive_at;
  };
  EXPECT_EQ(at(0.5, true), 1);  // the bound itself
  EXPECT_EQ(at(std::nextafter(0.5, 1.0), true), std::nullopt);
  EXPECT_EQ(at(-1, true), 1);  // another token than the reference's
  EXPECT_EQ(at(std::nan(""), true), 1);
  EXPECT_EQ(at(0, false), std::nullopt);
}

TEST(TokenRelations, EqualIdsAreEqualHoweverNarrowTheChoices) {
  Result alone = run_of(1, {{1, 2}}), split = run_of(4, {{1, 2}});
  narrow(alone, 0);
  narrow(split, 1);
  const Relation relation = only_relation({alone, split});
  EXPECT_TRUE(relation.equal);
  EXPECT_EQ(relation.inconclusive_at, std::nullopt);
  EXPECT_TRUE(relation.as_expected());
}

TEST(TokenRelations, ADifferenceThatIsExpectedIsNotWhereItIsInconclusive) {
  Result alone = run_of(1, {{1, 2}}), split = run_of(4, {{1, 3}});
  split.expected.status = Status::fail;
  EXPECT_TRUE(only_relation({alone, split}).as_expected());
  narrow(alone, 1);
  EXPECT_FALSE(only_relation({alone, split}).as_expected());
}

// Steps that the ids have and the margins do not are taken for sure: nothing is excused that nobody measured.
TEST(TokenRelations, StepsWithoutAMarginExcuseNothing) {
  Result alone = run_of(1, {{1, 2}}), split = run_of(4, {{1, 3}});
  alone.tokens->steps.clear();
  split.tokens->steps.resize(1);
  const Relation relation = only_relation({alone, split});
  EXPECT_FALSE(relation.equal);
  EXPECT_EQ(relation.inconclusive_at, std::nullopt);
}

TEST(TokenRelations, WhatDcp4IsExpectedToComeToSaysWhatIsExpectedOfThem) {
  const auto expected_equal = [](const Expectation& dcp1, const Expectation& dcp4) {
    Result alone = run_of(1, {{1}}), split = run_of(4, {{1}});
    alone.expected = dcp1;
    split.expected = dcp4;
    return only_relation({alone, split}).expected_equal;
  };
  EXPECT_TRUE(expected_equal({}, {}));
  EXPECT_FALSE(expected_equal({}, {Status::fail, {}, {}}));
  EXPECT_FALSE(expected_equal({}, {Status::fail, {}, {{"kv_c_out", "tokens"}}}));
  EXPECT_TRUE(expected_equal({}, {Status::fail, {}, {{"kv_c_out"}}}));
  EXPECT_TRUE(expected_equal({}, {Status::fail, {}, std::vector<std::string>{}}));
  EXPECT_TRUE(expected_equal({}, {Status::pass, {}, {{"tokens"}}}));
  EXPECT_TRUE(expected_equal({Status::fail, {}, {}}, {}));  // DCP1's says nothing of it

  Result alone = run_of(1, {{1}}), split = run_of(4, {{1}});
  split.expected.status = Status::fail;
  EXPECT_FALSE(only_relation({alone, split}).as_expected());  // a fault that is not seen
}

}  // namespace
}  // namespace dcpcheck
