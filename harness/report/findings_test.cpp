#include "harness/report/findings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dcpcheck {
namespace {

Violation wrong_rows(std::int64_t rank, std::int64_t last, std::int64_t rows) {
  Violation violation;
  violation.reason = Reason::inadmissible;
  violation.buffer = "workspace";
  violation.rank = rank;
  violation.tokens = {{0, last}};
  violation.token_rows = last + 1;
  violation.count = 10 * (last + 1);
  violation.rows = rows;
  return violation;
}

TEST(Findings, RowsOfTheLaunchAreItsTokens) {
  Result result;
  result.token_rows = 512;
  result.verdict.violations = {wrong_rows(0, 3, 0), wrong_rows(1, 3, 0)};
  EXPECT_THAT(describe_violations(result),
              testing::ElementsAre(
                  "workspace: wrong values on ranks 0-1, 4 of 512 token rows each (rank 0: tokens 0-3), 40 elements each"));
}

TEST(Findings, OtherRowsAreTheBuffersOwn) {
  Result result;
  result.token_rows = 2;
  result.verdict.violations = {wrong_rows(0, 24, 25)};
  EXPECT_THAT(describe_violations(result),
              testing::ElementsAre("workspace: wrong values on rank 0, 25 of 25 rows (rows 0-24), 250 elements"));
}

}  // namespace
}  // namespace dcpcheck
