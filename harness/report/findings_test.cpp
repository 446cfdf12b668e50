#include "harness/report/findings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

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

Violation unwritten_row(const std::string& stage, const std::string& op, const std::string& buffer) {
  Violation violation{Reason::unwritten, stage, op, buffer, 0, {{1, 1}}, 1, 64, {}};
  return violation;
}

Result with(std::vector<Violation> violations) {
  Result result;
  result.token_rows = 512;
  result.verdict.violations = std::move(violations);
  return result;
}

// The launch of a stage has rows of its own: "of 512" would be the case's.
TEST(Findings, OfAPipelineSayWhoseLaunchAndWhere) {
  EXPECT_THAT(describe_violations(with({unwritten_row("decode.3", "fused_norm_rope", "kv_c_out")})),
              testing::ElementsAre("fused_norm_rope, decode.3: kv_c_out: unwritten on rank 0, 1 token row (token 1)"));
  Violation of_rows = wrong_rows(0, 3, 25);
  of_rows.stage = "prefill.1";
  of_rows.op = "gather_cache";
  EXPECT_THAT(
      describe_violations(with({of_rows})),
      testing::ElementsAre("gather_cache, prefill.1: workspace: wrong values on rank 0, 4 of 25 rows (rows 0-3), 40 elements"));
}

TEST(Findings, OfManyStagesAreToldOnce) {
  std::vector<Violation> violations;
  for (const std::string stage : {"prefill.0", "prefill.1", "decode.0", "decode.1", "decode.2", "decode.5"})
    for (const std::string buffer : {"kv_c_out", "k_pe_out"}) {
      violations.push_back(unwritten_row(stage, "fused_norm_rope", buffer));
      if (stage == "decode.1") violations.back().tokens = {{2, 2}};  // elsewhere than in the stage that is told in full
    }
  EXPECT_THAT(describe_violations(with(violations)),
              testing::ElementsAre("fused_norm_rope, prefill.0: kv_c_out and k_pe_out: unwritten on rank 0, 1 token row (token "
                                   "1); and in 5 further stages (prefill.1, decode.0 to decode.2, decode.5)"));
  for (const std::string stage : {"decode.7", "decode.9", "other"})
    violations.push_back(unwritten_row(stage, "fused_norm_rope", "kv_c_out"));
  EXPECT_THAT(describe_violations(with(violations)),
              testing::ElementsAre(testing::EndsWith("kv_c_out: unwritten on rank 0, 1 token row (token 1); and in 8 further "
                                                     "stages (prefill.1, decode.0 to decode.2, decode.5, …)"),
                                   testing::HasSubstr(": k_pe_out: unwritten")));
}

// What is not the same op, buffer, reason and set of stages keeps a sentence of its own.
TEST(Findings, OfAPipelineAreNotMixed) {
  Violation other_reason = unwritten_row("decode.0", "a", "x");
  other_reason.reason = Reason::inadmissible;
  EXPECT_THAT(
      describe_violations(with({unwritten_row("prefill.0", "a", "x"), unwritten_row("prefill.0", "b", "x"), other_reason,
                                unwritten_row("decode.0", "a", "x"), unwritten_row("decode.0", "a", "y")})),
      testing::ElementsAre("a, prefill.0: x: unwritten on rank 0, 1 token row (token 1); and in 1 further stage (decode.0)",
                           "b, prefill.0: x: unwritten on rank 0, 1 token row (token 1)",
                           "a, decode.0: x: wrong values on rank 0, 1 token row (token 1), 64 elements",
                           "a, decode.0: y: unwritten on rank 0, 1 token row (token 1)"));
}

Result with_tokens(Tokens tokens, Reason reason = Reason::uninitialised_read) {
  Violation violation;
  violation.reason = reason;
  violation.buffer = "tokens";
  violation.count = 2;
  Result result = with({violation});
  result.tokens = std::move(tokens);
  return result;
}

Tokens tokens_of(std::vector<std::vector<std::int32_t>> a, std::vector<std::vector<std::int32_t>> b) {
  Tokens tokens;
  tokens.ids = std::move(a);
  tokens.poison_b_ids = std::move(b);
  return tokens;
}

TEST(Findings, TokensAreToldFromWhereThePoisonsPart) {
  EXPECT_THAT(
      describe_violations(with_tokens(tokens_of({{17, 203}}, {{98, 203}}))),
      testing::ElementsAre("tokens: 17 203; on the other poison 98 203: the output depends on memory that nobody wrote"));
  EXPECT_THAT(
      describe_violations(with_tokens(tokens_of({{1, 2, 3, 4, 5, 6, 7, 8, 9}}, {{1, 2, 9, 9, 9, 9, 9, 9}}))),
      testing::ElementsAre("tokens from step 2 on: 3 4 5 6 7 8 …; on the other poison 9 9 9 9 9 9: the output depends on "
                           "memory that nobody wrote"));
  // Of several requests the one that parts first.
  EXPECT_THAT(describe_violations(with_tokens(tokens_of({{1, 2, 3}, {4, 5, 6}}, {{1, 2, 9}, {4, -1, 6}}))),
              testing::ElementsAre("tokens of request 1 from step 1 on: 5 6; on the other poison -1 6: the output depends on "
                                   "memory that nobody wrote"));
  EXPECT_THAT(describe_violations(with_tokens(tokens_of({{1}}, {{1, 2}}))),
              testing::ElementsAre(
                  "tokens from step 1 on: none; on the other poison 2: the output depends on memory that nobody wrote"));
}

// The sentence on the poisons is for what it says alone.
TEST(Findings, TokensThatAreWrongOtherwiseAreTold) {
  EXPECT_THAT(describe_violations(with_tokens(tokens_of({{1}}, {{2}}), Reason::race)),
              testing::ElementsAre("tokens: differs between two runs on the same memory on rank 0, 2 elements"));
  EXPECT_THAT(describe_violations(with_tokens(tokens_of({{1}}, {{1}}))),
              testing::ElementsAre("tokens: depends on memory that nobody wrote on rank 0, 2 elements"));
  Result result = with_tokens(tokens_of({{1}}, {{2}}));
  result.verdict.violations.push_back(result.verdict.violations.front());
  result.verdict.violations.back().buffer = "logits";  // to the same extent, and no tokens
  EXPECT_THAT(describe_violations(result),
              testing::ElementsAre(testing::StartsWith("tokens: 1; on the other poison 2"),
                                   "logits: depends on memory that nobody wrote on rank 0, 2 elements"));
}

TEST(Findings, WhatWasNotJudgedIsSaid) {
  Result result = with({unwritten_row("prefill.0", "a", "x")});
  result.verdict.tainted = 12345;
  result.verdict.left_out = 1;
  EXPECT_THAT(
      describe_violations(result),
      testing::ElementsAre(testing::_,
                           "12345 elements downstream rest on bytes that nobody wrote or that went astray, and were not judged",
                           "1 element was left out: the case has a sample of its rows judged"));
}

}  // namespace
}  // namespace dcpcheck
