#include "harness/campaign/intervals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

namespace dcpcheck {
namespace {

TEST(Intervals, JoinNeighboursAndOverlaps) {
  Intervals set;
  set.add(10, 20);
  set.add(30, 40);
  set.add(20, 30);
  EXPECT_THAT(set.all(), testing::ElementsAre(testing::Pair(10, 40)));
  set.add(5, 5);
  EXPECT_EQ(set.all().size(), 1U);
  set.add(0, 100);
  EXPECT_THAT(set.all(), testing::ElementsAre(testing::Pair(0, 100)));
}

TEST(Intervals, FindWhatIsNextInsideAndOutside) {
  Intervals set;
  EXPECT_EQ(set.next_outside(7), 7U);
  EXPECT_EQ(set.next_inside(7), std::numeric_limits<std::uint64_t>::max());
  set.add(10, 20);
  EXPECT_EQ(set.next_outside(9), 9U);
  EXPECT_EQ(set.next_outside(10), 20U);
  EXPECT_EQ(set.next_outside(20), 20U);
  EXPECT_EQ(set.next_inside(3), 10U);
  EXPECT_EQ(set.next_inside(15), 15U);
  EXPECT_EQ(set.next_inside(20), std::numeric_limits<std::uint64_t>::max());
}

TEST(Intervals, AreTheSetOfTheirNumbers) {
  std::minstd_rand random(1);
  Intervals set;
  std::set<std::uint64_t> numbers;
  for (int step = 0; step < 300; ++step) {
    const std::uint64_t from = random() % 400, to = from + random() % 12;
    set.add(from, to);
    for (std::uint64_t number = from; number < to; ++number) numbers.insert(number);
    const std::uint64_t asked = random() % 420;
    EXPECT_EQ(set.contains(asked), numbers.contains(asked)) << asked;
  }
}

}  // namespace
}  // namespace dcpcheck
