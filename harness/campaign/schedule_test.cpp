#include "harness/campaign/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

using testing::ElementsAre;

std::vector<Lane> lanes_of(const std::vector<std::int64_t>& shares) {
  std::vector<Lane> lanes;
  for (const std::int64_t share : shares) lanes.push_back({"op" + std::to_string(lanes.size()), "kernel", share, true, {}});
  return lanes;
}

TEST(Schedule, ARoundHasEachLaneAsOftenAsItsShareSpreadOut) {
  EXPECT_THAT(round_of(lanes_of({1})), ElementsAre(0));
  EXPECT_THAT(round_of(lanes_of({1, 1, 1})), ElementsAre(0, 1, 2));
  EXPECT_THAT(round_of(lanes_of({2, 1})), ElementsAre(0, 1, 0));
  EXPECT_THAT(round_of(lanes_of({4, 1})), ElementsAre(0, 0, 1, 0, 0));
}

TEST(Schedule, EveryIndexOfALaneComesOnceAndInOrder) {
  const std::vector<std::size_t> round = round_of(lanes_of({3, 1, 2}));
  std::vector<std::uint64_t> next(3, 0);
  for (std::uint64_t number = 0; number < 600; ++number) {
    const Turn turn = turn_of(round, number);
    EXPECT_EQ(turn.index, next[turn.lane]++) << number;
  }
  EXPECT_THAT(next, ElementsAre(300, 100, 200));
}

TEST(Schedule, ShardsTogetherHaveEachNumberOnce) {
  for (const std::size_t lanes : {1, 2, 4, 9}) {
    for (const std::uint64_t count : {1, 2, 3, 4, 9}) {
      for (std::uint64_t number = 0; number < 1000; ++number) {
        int owners = 0;
        for (std::uint64_t index = 0; index < count; ++index) owners += belongs({index, count}, lanes, number) ? 1 : 0;
        EXPECT_EQ(owners, 1) << lanes << " lanes, " << count << " shards, " << number;
      }
    }
  }
}

// With as many shards as lanes, and no shift, each shard would have one lane alone.
TEST(Schedule, AShardHasCasesOfEveryLane) {
  const std::vector<std::size_t> round = round_of(lanes_of({1, 1, 1, 1}));
  for (std::uint64_t index = 0; index < 4; ++index) {
    std::set<std::size_t> lanes;
    for (std::uint64_t number = 0; number < 64; ++number)
      if (belongs({index, 4}, round.size(), number)) lanes.insert(turn_of(round, number).lane);
    EXPECT_EQ(lanes.size(), 4U) << index;
  }
}

TEST(Schedule, ACaseIsJudgedAndHeldToOneLawInTurn) {
  Lane lane{"op", "kernel", 1, true, {"a", "b"}};
  EXPECT_THAT(checks_of(lane, 0), ElementsAre("", "a"));
  EXPECT_THAT(checks_of(lane, 3), ElementsAre("", "b"));
  lane.judged = false;
  EXPECT_THAT(checks_of(lane, 3), ElementsAre("a", "b"));
  EXPECT_THAT(checks_of(Lane{"op", "kernel", 1, true, {}}, 5), ElementsAre(""));
}

TEST(Schedule, AShardIsIndexOfCount) {
  EXPECT_EQ(parse_shard("2/8"), (Shard{2, 8}));
  for (const char* text : {"", "2", "/", "8/8", "9/8", "-1/8", "1/0", "a/2", "1/2x", "1//2", "0/1000001"})
    EXPECT_THROW(parse_shard(text), InputError) << text;
}

}  // namespace
}  // namespace dcpcheck
