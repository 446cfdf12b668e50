#include "harness/report/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "harness/report/console.hpp"
#include "harness/report/json_report.hpp"
#include "harness/report/sample_report_test.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

// Compares with reports/baselines/<name>. DCPCHECK_APPROVE=1 writes the file instead: look at the difference, commit it.
void expect_approved(const std::string& name, const std::string& text) {
  const std::string path = std::string(DCPCHECK_SOURCE_DIR) + "/reports/baselines/" + name;
  if (std::getenv("DCPCHECK_APPROVE") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  std::stringstream approved;
  approved << file.rdbuf();
  EXPECT_EQ(text, approved.str()) << path << " is the approved output; DCPCHECK_APPROVE=1 takes the new one";
}

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
  Report report = sample_list();
  for (Result& result : report.results) {
    result.name = std::string(300, 'n') + "-dcp4";
    result.fault = std::string(100, 'f');
    result.verdict.status = Status::inconclusive;
    result.verdict.worst.fraction = 1e300;
    for (Violation& violation : result.verdict.violations) {
      violation.buffer += std::string(90, 'b');
      violation.tokens = {{1'000'000'000'000, 2'000'000'000'000}, {3'000'000'000'000, 4'000'000'000'000}};
      violation.first = {{{1, 2, 3, 1'000'000'000'000}, std::string(200, 'x'), "got", "admissible"}};
    }
  }
  report.relations = sample_report().relations;
  for (const bool pairs : {false, true}) {
    if (pairs) report.results.back().name = std::string(300, 'm') + "-dcp1";
    if (!pairs) report.results.back().name = "語" + std::string(300, 'm');
    report.relations.front().scenario = std::string(300, 'n');
    report.relations.front().equal = false;
    for (const std::string& line : lines_of(render_console(report))) EXPECT_LE(text::width(line), 80) << line;
  }
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
  verdict.violations = {{Reason::guard, "", "", "mla", 0, {}, 0, 1, {}}, {Reason::stray_write, "", "", "index", 1, {}, 0, 1, {}}};
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
