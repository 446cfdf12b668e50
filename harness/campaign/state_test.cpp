#include "harness/campaign/state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/campaign/coverage.hpp"
#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<Lane> kLanes{{"op", "builtin:op@fault", 2, true, {"chunking"}}, {"other", "builtin:other", 1, true, {}}};

CampaignSpec spec_of(Shard shard, std::uint64_t cases) {
  CampaignSpec spec;
  spec.seed = 0xfedcba9876543210;
  spec.backend = "host";
  spec.kernels = {"op@fault", "other"};
  spec.shares = {{"op", 2}};
  spec.settings = {"dcp.world_size=4"};
  spec.cases = cases;
  spec.shard = shard;
  return spec;
}

Check failure(const std::string& reason, const std::string& buffer) {
  Check check;
  check.status = Status::fail;
  check.reason = reason;
  check.buffer = buffer;
  check.what = {"it is wrong"};
  return check;
}

Tally passes(std::int64_t cases) {
  Tally tally;
  for (std::int64_t i = 0; i < cases; ++i) tally.add("op", 4, {Check{"", Status::pass, {}, {}, {}, {}, {}, {}}});
  return tally;
}

CampaignState state(const std::vector<json::Value>& records) { return state_of(records, "a journal"); }

TEST(CampaignState, IsWhatItsRecordsAddUpTo) {
  const CampaignState all = state({opening(spec_of({}, 20), kLanes, 3, "0.1.0"), range_done(0, 8, passes(8)),
                                   case_told(9, {1, "case 1", {failure("unwritten", "k_pe_out")}}), finding_made("abc", 9),
                                   range_done(8, 20, passes(12))});
  EXPECT_EQ(all.spec, spec_of({}, 20));
  EXPECT_EQ(lanes_to_json(all.lanes), lanes_to_json(kLanes));
  EXPECT_EQ(all.stored, 3U);
  EXPECT_EQ(all.done.next_outside(0), 20U);
  EXPECT_EQ(all.tally.cases, 20);
  EXPECT_EQ(all.tally.rank_cases, 80);
  EXPECT_EQ(all.investigated.at("abc"), 9U);
  ASSERT_EQ(all.told.size(), 1U);
  EXPECT_THAT(all.told.at(9).checks.front().what, ElementsAre("it is wrong"));
}

// A range that was being run when its campaign ended is run again, and tells its cases again.
TEST(CampaignState, ACaseThatIsToldTwiceCountsOnce) {
  const json::Value told = case_told(4, {0, "case 4", {failure("unwritten", "out")}});
  const CampaignState all = state({opening(spec_of({}, 0), kLanes, 0, ""), told, told, range_done(0, 1024, passes(1024))});
  const auto findings = findings_of(all);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings.begin()->second.cases, 1);
}

TEST(CampaignState, FindingsAreOneASignatureOfTheFirstCase) {
  Check by_law = failure("law", "out");
  by_law.law = "chunking";
  Check unsure = failure("none", "");
  unsure.status = Status::inconclusive;
  const CampaignState all =
      state({opening(spec_of({}, 0), kLanes, 0, ""), case_told(7, {0, "case 7", {failure("unwritten", "out"), by_law}}),
             case_told(3, {0, "case 3", {failure("unwritten", "out")}}),
             case_told(5, {1, "case 5", {failure("unwritten", "out")}}), case_told(6, {0, "case 6", {unsure}})});
  const auto findings = findings_of(all);
  ASSERT_EQ(findings.size(), 3U);
  const Signature first{"op", "builtin:op@fault", "", "unwritten", "out"};
  EXPECT_EQ(findings.at(id_of(first)).cases, 2);
  EXPECT_EQ(findings.at(id_of(first)).first, 3U);
}

TEST(CampaignState, RecordsThatAreNoneAreRefused) {
  const json::Value open = opening(spec_of({}, 0), kLanes, 0, "");
  EXPECT_THROW(state({}), InputError);
  EXPECT_THROW(state({range_done(0, 8, passes(8))}), InputError);
  EXPECT_THROW(state({open, json::Object{{"what", 1}}}), InputError);
  EXPECT_THROW(state({open, case_told(1, {7, "of no lane", {}})}), InputError);
  EXPECT_THROW(state({open, json::Object{{"done", json::Array{1}}, {"tally", to_json(Tally{})}}}), InputError);
}

CampaignState shard(std::uint64_t index, std::uint64_t done, std::uint64_t cases = 30) {
  return state({opening(spec_of({index, 3}, cases), kLanes, 0, ""), range_done(0, done, passes(10)),
                case_told(index, {0, "case", {failure("unwritten", "out")}}), finding_made("abc", index)});
}

TEST(CampaignState, NoRangeIsDoneTwice) {
  const json::Value open = opening(spec_of({}, 0), kLanes, 0, "");
  EXPECT_THROW(state({open, range_done(0, 8, passes(8)), range_done(4, 9, passes(5))}), InputError);
  EXPECT_EQ(state({open, range_done(0, 8, passes(8)), range_done(8, 9, passes(1))}).tally.cases, 9);
}

TEST(CampaignState, AnotherNumberOfCasesMayBeAskedForLater) {
  EXPECT_EQ(state({opening(spec_of({}, 20), kLanes, 0, ""), cases_asked(60)}).spec.cases, 60U);
}

TEST(CampaignState, ShardsThatAreAllThereAreOneCampaign) {
  const CampaignState all = merged({shard(1, 30), shard(0, 30), shard(2, 30)}, {"b", "a", "c"});
  EXPECT_EQ(all.tally.cases, 30);
  EXPECT_EQ(all.told.size(), 3U);
  EXPECT_EQ(all.investigated.at("abc"), 0U);
  EXPECT_EQ(all.spec, spec_of({}, 30));
}

void expect_refused(const std::vector<CampaignState>& shards, const std::string& says) {
  try {
    merged(shards, {"a", "b", "c", "d"});
    FAIL() << says;
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(says));
  }
}

TEST(CampaignState, ShardsThatAreNotOneCampaignAreRefused) {
  expect_refused({shard(0, 30), shard(2, 30)}, "shard 1 of 3 is missing");
  expect_refused({shard(0, 30), shard(1, 30), shard(1, 30), shard(2, 30)}, "are the same shard");
  expect_refused({shard(0, 30), shard(1, 12), shard(2, 30)}, "b has not run its case");
  expect_refused({shard(0, 30), shard(1, 30, 31), shard(2, 30)}, "--cases");
  CampaignState other = shard(1, 30);
  other.spec.seed = 1;
  expect_refused({shard(0, 30), other, shard(2, 30)}, "--seed");
}

// What shards have run between them: each its own numbers of a range.
TEST(CampaignState, IndicesDoneAreThoseOfEachShardsOwnNumbers) {
  const auto indices = indices_done({shard(0, 30), shard(1, 30), shard(2, 30)});
  EXPECT_THAT(indices[0].all(), ElementsAre(testing::Pair(0, 20)));
  EXPECT_THAT(indices[1].all(), ElementsAre(testing::Pair(0, 10)));
  const auto part = indices_done({shard(0, 30)});
  std::uint64_t count = 0;
  for (const auto& [from, to] : part[0].all()) count += to - from;
  EXPECT_LT(count, 20U);
  EXPECT_GT(count, 0U);
}

TEST(CampaignSpec, ComesBackFromItsDocumentAndSaysWhatDiffers) {
  const CampaignSpec spec = spec_of({2, 5}, 100);
  EXPECT_EQ(spec_from_json(to_json(spec), "a spec"), spec);
  EXPECT_EQ(difference(spec, spec), "");
  CampaignSpec other = spec;
  other.cases = 7;
  EXPECT_EQ(difference(spec, other), "");
  other.settings.clear();
  EXPECT_EQ(difference(spec, other), "--set");
}

}  // namespace
}  // namespace dcpcheck
