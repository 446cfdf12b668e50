#include "properties/covering.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace dcpcheck {
namespace {

// A made-up space of cases: the rows for which `valid` holds. An attempt draws the free buckets at random.
struct Space {
  std::vector<int> sizes;
  std::function<bool(const Buckets&)> valid;

  PairSet feasible() const {
    PairSet out(sizes);
    Buckets row(sizes.size(), 0);
    for (bool more = true; more;) {
      if (valid(row)) out.add(row);
      more = false;
      for (std::size_t d = 0; d < row.size() && !more; ++d) {
        more = ++row[d] < sizes[d];
        if (!more) row[d] = 0;
      }
    }
    return out;
  }

  CoveringArray cover(int trials) const {
    std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same rows in each run
    const auto attempt = [&, random](const Wishes& wishes, int) mutable -> std::optional<CoveringRow> {
      Buckets row(sizes.size());
      for (std::size_t d = 0; d < sizes.size(); ++d) {
        row[d] = wishes.must[d] >= 0  ? wishes.must[d]
                 : wishes.may[d] >= 0 ? wishes.may[d]
                                      : static_cast<int>(random() % static_cast<unsigned>(sizes[d]));
      }
      if (!valid(row)) return std::nullopt;
      return CoveringRow{row, {}};
    };
    return make_covering_array(sizes, attempt, trials);
  }
};

// Which of all pairs are in the one set and not in the other.
std::int64_t differing(const PairSet& a, const PairSet& b) {
  std::int64_t count = 0;
  a.every([&](int d, int i, int e, int j) { count += a.contains(d, i, e, j) != b.contains(d, i, e, j) ? 1 : 0; });
  return count;
}

PairSet pairs_of(const std::vector<int>& sizes, const std::vector<CoveringRow>& rows) {
  PairSet out(sizes);
  for (const CoveringRow& row : rows) out.add(row.buckets);
  return out;
}

TEST(Covering, AFreeSpaceIsCoveredByFewRows) {
  const Space space{std::vector<int>(20, 4), [](const Buckets&) { return true; }};
  const CoveringArray array = space.cover(4);
  EXPECT_EQ(array.feasible(), 190 * 16);
  EXPECT_EQ(array.infeasible.size(), 0);
  EXPECT_EQ(differing(pairs_of(space.sizes, array.rows), array.met), 0) << "rows that were dropped took pairs with them";
  EXPECT_LE(array.rows.size(), 64U) << "16 is less than the least, four times as much is greedy";
}

TEST(Covering, PairsThatCannotBeAreFoundToBeSo) {
  // Bucket 0 of one dimension goes with the even ones of the next, and no row has bucket 3 of the last two.
  const Space space{std::vector<int>(6, 4), [](const Buckets& row) {
                      return (row[0] != 0 || row[1] % 2 == 0) && (row[2] != 1 || row[3] > 1) && row[4] != 3 && row[5] != 3;
                    }};
  const CoveringArray array = space.cover(60);
  const PairSet feasible = space.feasible();
  EXPECT_EQ(differing(array.met, feasible), 0);
  EXPECT_EQ(differing(pairs_of(space.sizes, array.rows), feasible), 0);
  EXPECT_EQ(array.met.size() + array.infeasible.size(), 15 * 16) << "each pair is one or the other";
  EXPECT_TRUE(array.infeasible.contains(0, 0, 1, 1));
  EXPECT_TRUE(array.infeasible.contains(1, 1, 0, 0)) << "in either order";
  EXPECT_FALSE(array.infeasible.contains(0, 0, 1, 2));
}

TEST(Covering, AnImpossibleBucketCostsFewAttempts) {
  const auto attempts = [](bool possible) {
    const Space space{std::vector<int>(12, 5), [=](const Buckets& row) { return possible || row[3] != 4; }};
    return space.cover(50).attempts;
  };
  EXPECT_LT(attempts(false), attempts(true) + 200) << "55 pairs of 50 attempts each";
}

TEST(Covering, NothingToCover) {
  const Space space{{3}, [](const Buckets& row) { return row[0] != 1; }};
  const CoveringArray array = space.cover(5);
  EXPECT_EQ(array.feasible(), 0);
  EXPECT_TRUE(array.rows.empty());
}

TEST(PairSet, RowsWithoutABucketHaveNoPairsThere) {
  PairSet pairs({2, 3, 2});
  pairs.add({1, -1, 0});
  EXPECT_EQ(pairs.size(), 1);
  EXPECT_TRUE(pairs.contains(2, 0, 0, 1));
  pairs.add({1, 2, 0});
  EXPECT_EQ(pairs.size(), 3);
}

}  // namespace
}  // namespace dcpcheck
