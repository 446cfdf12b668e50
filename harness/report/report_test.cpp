#include "harness/report/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "harness/report/approved_test.hpp"
#include "harness/report/console.hpp"
#include "harness/report/json_report.hpp"
#include "harness/report/sample_report_test.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Report, ConsolePairs) { expect_approved("repro.txt", render_console(sample_report())); }
TEST(Report, ConsoleList) { expect_approved("run.txt", render_console(sample_list())); }
TEST(Report, Json) { expect_approved("repro.json", json::dump(report_to_json(sample_report()), 2) + "\n"); }
TEST(Report, JsonList) { expect_approved("run.json", json::dump(report_to_json(sample_list()), 2) + "\n"); }

// Two results that would share a cell: side by side one would hide the other.
TEST(Report, AResultNeverHidesAnother) {
  Report report = sample_report();
  report.results = {sample_result("x-dcp4", "k_gated", 4), sample_result("x-dcp4", "k_gated", 4)};
  const std::string page = render_console(report);
  EXPECT_EQ(page.find("Scenario"), std::string::npos) << page;
  EXPECT_NE(page.find("x-dcp4", page.find("x-dcp4") + 1), std::string::npos) << page;
}

TEST(Report, JsonIsReadBack) {
  const json::Value document = report_to_json(sample_list());
  EXPECT_EQ(json::parse(json::dump(document, 2), "report"), document);
}

TEST(Report, NoLineIsOver80ColumnsWhateverTheNames) {
  for (const bool pairs : {false, true}) {
    Report report = sample_report();
    report.paired = pairs;
    for (Result& result : report.results) {
      const std::string start = (pairs ? "" : "語") + std::string(300, 'n');
      result.name = start + result.op + "-dcp" + std::to_string(result.world_size);
      if (!result.fault.empty()) result.fault = result.fault.substr(0, 1) + std::string(100, 'f');
      if (result.verdict.status == Status::fail) result.verdict.status = Status::inconclusive;
      result.verdict.worst.fraction = 1e300;
      result.verdict.tainted = result.verdict.left_out = 1'000'000'000'000'000;
      if (result.tokens) result.tokens->ids = {std::vector<std::int32_t>(30, 2'147'483'647)};
      for (Violation& violation : result.verdict.violations) {
        if (violation.buffer != kTokens) violation.buffer += std::string(90, 'b');
        if (!violation.op.empty()) violation.op += std::string(90, 'o');
        if (!violation.stage.empty()) violation.stage = std::string(90, 's') + violation.stage;
        violation.tokens = {{1'000'000'000'000, 2'000'000'000'000}, {3'000'000'000'000, 4'000'000'000'000}};
        violation.first = {{{1, 2, 3, 1'000'000'000'000}, std::string(200, 'x'), "got", "admissible"}};
      }
    }
    for (Relation& relation : report.relations) {
      const std::string op = relation.quantity == kTokens ? "generate" : "fused_norm_rope";
      relation.scenario = std::string(300, 'n') + op;
      if (!relation.fault.empty()) relation.fault = relation.fault.substr(0, 1) + std::string(100, 'f');
      relation.expected_equal = !relation.equal;
    }
    report.relations.back().inconclusive_at = 1'000'000'000'000;
    const std::string page = render_console(report);
    ASSERT_EQ(page.starts_with("Scenario"), pairs) << page;
    EXPECT_EQ(page.find("tokens 3151ddcc ? 64924199 !!") != std::string::npos, pairs) << page;
    for (const std::string& line : lines_of(page)) EXPECT_LE(text::width(line), 80) << line;
  }
}

// Two scenarios of one name, of an op with tokens and of one without: each row has what is compared of its own.
TEST(Report, ARowHasTheRelationOfItsOwnQuantity) {
  Report report = sample_report();
  for (Result& result : report.results)
    if (result.op == "generate") result.name = result.name.substr(std::string("tokens-").size());
  for (Relation& relation : report.relations) relation.scenario = "512";
  const auto rows = [&] {
    std::vector<std::string> shown = lines_of(render_console(report));
    shown.resize(6);
    return shown;
  };
  const auto table = testing::ElementsAre(
      testing::StartsWith("Scenario "), testing::HasSubstr("K rows aaaa1111 = aaaa1111 ok"),
      testing::HasSubstr("K rows aaaa1111 ≠ b0000000 ok"), testing::EndsWith("fail     -                          !!"),
      testing::HasSubstr("tokens 3151ddcc = 3151ddcc ok"), testing::HasSubstr("tokens 3151ddcc ≠ 64924199 ok"));
  EXPECT_THAT(rows(), table);
  std::reverse(report.relations.begin(), report.relations.end());
  EXPECT_THAT(rows(), table);
}

// What is said of the last relation of the sample, k_gated's tokens, with these ids.
std::string said_of_tokens(std::vector<std::int32_t> dcp4, std::optional<std::int64_t> inconclusive_at, bool expected_equal) {
  Report report = sample_report();
  Relation& relation = report.relations.back();
  relation.dcp1_ids = {{0, 1, 2, 3, 4, 5, 6, 7}};
  relation.dcp4_ids = {std::move(dcp4)};
  relation.equal = relation.dcp1_ids == relation.dcp4_ids;
  relation.inconclusive_at = inconclusive_at;
  relation.expected_equal = expected_equal;
  const std::string page = render_console(report);
  const std::string head = "\ntokens-512, k_gated, host: ";
  const std::size_t begin = page.find(head), end = page.find("\n\n", begin);
  if (begin == std::string::npos) return "";
  std::string sentence = page.substr(begin + head.size(), end - begin - head.size());
  for (std::size_t at = sentence.find("\n  "); at != std::string::npos; at = sentence.find("\n  "))
    sentence.replace(at, 3, " ");
  EXPECT_EQ(exit_code(report), 1);
  return sentence;
}

TEST(Report, TokensThatPartAreToldFromWhere) {
  const std::vector<std::int32_t> same{0, 1, 2, 3, 4, 5, 6, 7}, parted{0, 1, 2, 3, 4, 9, 9, 9};
  EXPECT_EQ(said_of_tokens(parted, {}, false), "");
  EXPECT_EQ(said_of_tokens(parted, {}, true),
            "tokens under DCP4 differ from those under DCP1 from step 5 on, and should be equal");
  EXPECT_EQ(said_of_tokens(same, {}, false), "tokens under DCP4 equal those under DCP1, and should not be equal");
  EXPECT_EQ(said_of_tokens(parted, 5, true),
            "tokens under DCP4 differ from those under DCP1 from step 5 on, where the choice was too narrow to be sure of: "
            "inconclusive");
  EXPECT_EQ(said_of_tokens(parted, 2, false),
            "tokens under DCP4 differ from those under DCP1 from step 5 on; at step 2 the choice was too narrow to be sure of: "
            "inconclusive");
}

TEST(Report, InconclusiveRelationsAreCounted) {
  Report report = sample_report();
  report.relations.back().inconclusive_at = 0;
  const std::string page = render_console(report);
  EXPECT_THAT(page, testing::HasSubstr("tokens 3151ddcc ? 64924199 !!"));
  EXPECT_THAT(page, testing::EndsWith("3 of 4 relations as expected, 1\ninconclusive\n")) << page;
}

// A pass says below the table what it did not judge; a failure says so itself, once.
TEST(Report, WhatWasLeftOutIsSaidOfPassesToo) {
  Report report = sample_report();
  report.paired = false;
  for (Result& result : report.results) result.verdict.left_out = 0;
  EXPECT_THAT(render_console(report), testing::Not(testing::HasSubstr("eft out")));
  for (Result& result : report.results)
    if (result.op == "generate") result.verdict.left_out = result.world_size;
  std::string page = render_console(report);
  EXPECT_THAT(page, testing::HasSubstr("\n\nLeft out, because these cases have a sample of their rows judged:\n"
                                       "  tokens-512-dcp1, fixed and k_gated: 1 element\n"
                                       "  tokens-512-dcp4, fixed: 4 elements\n\n"));
  EXPECT_THAT(page, testing::HasSubstr("\n  4 elements were left out: the case has a sample of its rows judged\n"));
}

TEST(FirstDifference, IsTheEarliestOfAnyRequest) {
  using Ids = std::vector<std::vector<std::int32_t>>;
  const Ids ids{{1, 2, 3}, {4, 5}};
  EXPECT_EQ(first_difference(ids, ids), std::nullopt);
  EXPECT_EQ(first_difference({}, {}), std::nullopt);
  for (const auto& [other, step] :
       {std::pair(Ids{{1, 2, 9}, {4, 5}}, 2), std::pair(Ids{{1, 2, 9}, {4, 9}}, 1), std::pair(Ids{{9, 2, 3}, {4, 9}}, 0),
        std::pair(Ids{{1, 2, 3}, {4}}, 1), std::pair(Ids{{1, 2, 3}, {4, 5, 6}}, 2), std::pair(Ids{{1, 2, 3}}, 0),
        std::pair(Ids{{1, 2, 3}, {4, 5}, {6}}, 0)}) {
    EXPECT_EQ(first_difference(ids, other), step) << testing::PrintToString(other);
    EXPECT_EQ(first_difference(other, ids), step) << testing::PrintToString(other);
  }
}

TEST(Report, ColourIsOnlyColour) {
  std::string page = render_console(sample_report(), {true});
  EXPECT_THAT(page, testing::HasSubstr("\x1b["));
  for (std::size_t at = page.find('\x1b'); at != std::string::npos; at = page.find('\x1b'))
    page.erase(at, page.find('m', at) + 1 - at);
  EXPECT_EQ(page, render_console(sample_report()));
}

TEST(Report, ControlCharactersDoNotReachTheTerminal) {
  Report report = sample_list();
  report.results.front().name = "a\x1b[2Jb";
  EXPECT_THAT(render_console(report), testing::Not(testing::HasSubstr("\x1b")));
}

TEST(Report, ExitCodes) {
  Report report;
  EXPECT_EQ(exit_code(report), 3);  // 0 of 0 is not a pass
  report.results = {sample_result("a", "", 1)};
  EXPECT_EQ(exit_code(report), 0);
  EXPECT_TRUE(summarise(report).ok);

  Result other = sample_result("b", "", 1);
  other.as_expected = false;
  for (const Status status : {Status::pass, Status::fail, Status::crash, Status::hang, Status::flaky, Status::not_run}) {
    other.verdict.status = status;
    report.results = {sample_result("a", "", 1), other};
    EXPECT_EQ(exit_code(report), 1) << name_of(status);
  }
  other.verdict.status = Status::skipped;
  report.results = {sample_result("a", "", 1), other};
  EXPECT_EQ(exit_code(report), 0);
  report.results = {other};
  EXPECT_EQ(exit_code(report), 77);
  Result open = other;
  open.verdict.status = Status::inconclusive;
  report.results = {other, open};
  EXPECT_EQ(exit_code(report), 3);

  report.results = {sample_result("a", "", 1)};
  Relation relation;  // of runs that differ and should not
  report.relations = {relation};
  EXPECT_EQ(exit_code(report), 1);
  report.relations.front().expected_equal = false;
  EXPECT_EQ(exit_code(report), 0);
  report.relations.front().inconclusive_at = 0;
  EXPECT_EQ(exit_code(report), 1);
}

TEST(Report, SummaryCountsEveryStatus) {
  const Summary summary = summarise(sample_list());
  EXPECT_EQ(summary.counts.size(), kStatuses.size());
  EXPECT_EQ(summary.counts.at(Status::fail), 2);
  EXPECT_EQ(summary.counts.at(Status::skipped), 1);
  EXPECT_EQ(summary.total, 3);
  EXPECT_EQ(summary.as_expected, 1);
  EXPECT_FALSE(summary.ok);
}

TEST(Expectation, HoldsStatusBuffersAndReasons) {
  Verdict verdict;
  verdict.status = Status::fail;
  verdict.violations = {{Reason::guard, "", "", "mla", 0, {}, 0, 1, {}},
                        {Reason::stray_write, "", "", "index", 1, {}, 0, 1, {}}};
  EXPECT_FALSE(matches({}, verdict));
  EXPECT_TRUE(matches({Status::fail, {}, {}}, verdict));
  EXPECT_TRUE(matches({Status::fail, {{"guard", "stray-write"}}, {{"index", "mla"}}}, verdict));
  EXPECT_TRUE(matches({Status::fail, {{"guard", "stray-write", "unwritten"}}, {}}, verdict));
  EXPECT_FALSE(matches({Status::fail, {{"guard"}}, {}}, verdict));
  EXPECT_FALSE(matches({Status::fail, {}, {{"mla"}}}, verdict));
  EXPECT_FALSE(matches({Status::fail, {}, {{"mla", "index", "kv_c_out"}}}, verdict));
  EXPECT_FALSE(matches({Status::crash, {}, {}}, verdict));

  Verdict refused;
  refused.status = Status::fail;
  refused.reason = Reason::launch_refused;
  EXPECT_TRUE(matches({Status::fail, {{"launch-refused"}}, {}}, refused));
  EXPECT_FALSE(matches({Status::fail, {{"unwritten"}}, {}}, refused));
}

TEST(ScenarioName, IsTakenApart) {
  EXPECT_EQ(scenario_of("1024+1536-dcp4").scenario, "1024+1536");
  EXPECT_EQ(scenario_of("1024+1536-dcp4").world_size, 4);
  EXPECT_EQ(scenario_of("a-dcp1-dcp16").world_size, 16);
  for (const std::string name : {"plain", "x-dcp", "x-dcp4x", "x-dcp0", "x-dcp-4", "x-dcp99999999999999999999"}) {
    EXPECT_EQ(scenario_of(name).world_size, 0) << name;
    EXPECT_EQ(scenario_of(name).scenario, name);
  }
}

}  // namespace
}  // namespace dcpcheck
