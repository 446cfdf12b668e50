#include "harness/oracle/taint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Admissible values(std::vector<double> value, std::vector<double> error) {
  Admissible rows;
  rows.rows = 2;
  rows.columns = static_cast<std::int64_t>(value.size()) / 2;
  rows.value = std::move(value);
  rows.error = std::move(error);
  return rows;
}

std::vector<bool> between(const Admissible& a, const Admissible& b) {
  const Taint taint = taint_between({{"out", a}}, {{"out", b}});
  return taint.contains("out") ? taint.at("out") : std::vector<bool>{};
}

TEST(Taint, TheSameAnswersAreClean) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Admissible rows = values({1, nan, 3, -0.0}, {0.1, 0, 0, 0});
  EXPECT_THAT(between(rows, rows), IsEmpty());
}

TEST(Taint, AnotherValueOrBoundIsTainted) {
  const Admissible a = values({1, 2, 3, 0.0}, {0.1, 0.1, 0, 0});
  EXPECT_THAT(between(a, values({1, 2.5, 3, 0.0}, {0.1, 0.1, 0, 0})), ElementsAre(false, true, false, false));
  EXPECT_THAT(between(a, values({1, 2, 3, 0.0}, {0.2, 0.1, 0, 0})), ElementsAre(true, false, false, false));
  EXPECT_THAT(between(a, values({1, 2, 3, -0.0}, {0.1, 0.1, 0, 0})), ElementsAre(false, false, false, true))
      << "the sign of zero";
}

TEST(Taint, WhereAnythingMayComeOutNothingIsClean) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Admissible rows = values({0, 2, 3, 4}, {infinity, 0, 0, 0});
  EXPECT_THAT(between(rows, rows), ElementsAre(true, false, false, false));
}

TEST(Taint, AlternativesCount) {
  Admissible a = values({1, 2, 3, 4}, {0, 0, 0, 0}), b = a;
  a.alternatives = {{1, 2.5, 0}, {3, 4.5, 0}};
  b.alternatives = {{1, 2.5, 0}, {2, 3.5, 0}, {3, 4.25, 0}};
  EXPECT_THAT(between(a, b), ElementsAre(false, false, true, true));
  EXPECT_THAT(between(b, a), ElementsAre(false, false, true, true));
  EXPECT_THAT(between(a, a), IsEmpty());
}

TEST(Taint, CodesAreComparedAsTheyAre) {
  Admissible a;
  a.rows = 2;
  a.columns = 2;
  a.exact = true;
  a.codes = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}, std::byte{6}, std::byte{7}, std::byte{8}};
  Admissible b = a;
  b.codes[5] = std::byte{0};
  EXPECT_THAT(between(a, b), ElementsAre(false, false, true, false));
}

TEST(Taint, RowsThatAreNotKnownAreTainted) {
  Admissible a = values({1, 2, 3, 4}, {0, 0, 0, 0});
  a.rows_known = {true, false};
  EXPECT_THAT(between(a, a), ElementsAre(false, false, true, true));
}

TEST(Taint, AnswersOfTwoShapesAreAnError) {
  const Admissible a = values({1, 2, 3, 4}, {0, 0, 0, 0}), b = values({1, 2}, {0, 0});
  EXPECT_THROW(between(a, b), HarnessError);
  EXPECT_THROW(taint_between({{"out", a}}, {{"lse", a}}), HarnessError);
}

}  // namespace
}  // namespace dcpcheck
