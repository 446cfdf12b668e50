// JUnit, Markdown and annotations: what they make of the sample, to the letter, and that nothing in a report breaks them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/report/annotations.hpp"
#include "harness/report/approved_test.hpp"
#include "harness/report/format.hpp"
#include "harness/report/sample_report_test.hpp"

namespace dcpcheck {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string rendered(const std::string& name, const Report& report) {
  for (const Format& format : all_formats())
    if (format.name == name) return format.render(report);
  throw std::runtime_error("there is no format " + name);
}

// The sample, with a crash and a relation that is not as expected.
Report broken_report() {
  Report report = sample_list();
  Result crashed = report.results.front();
  crashed.name = "crashed";
  crashed.kernel = "exec:python3 mine.py";
  crashed.fault.clear();
  crashed.verdict = {};
  crashed.verdict.status = Status::crash;
  crashed.verdict.reason = Reason::process_ended;
  crashed.verdict.detail = "rank 0: the process ended by signal 11";
  crashed.cause.clear();
  crashed.as_expected = false;
  Result open = report.results.back();
  open.name = "open";
  open.verdict.status = Status::inconclusive;
  report.results.insert(report.results.end(), {crashed, open});
  report.relations = sample_report().relations;
  report.relations.front().equal = false;
  return report;
}

TEST(Formats, JunitOfRepro) { expect_approved("repro.junit.xml", rendered("junit", sample_report())); }
TEST(Formats, JunitOfRun) { expect_approved("run.junit.xml", rendered("junit", broken_report())); }
TEST(Formats, MarkdownOfRepro) { expect_approved("repro.md", rendered("markdown", sample_report())); }
TEST(Formats, MarkdownOfRun) { expect_approved("run.md", rendered("markdown", broken_report())); }
TEST(Formats, AnnotationsOfRun) { expect_approved("run.annotations.txt", annotations(broken_report())); }

TEST(Annotations, AreOnlyOfWhatIsNotAsExpected) {
  Report report = sample_report();
  for (Result& result : report.results) result.as_expected = true;
  EXPECT_EQ(annotations(report), "");
  report.results.front().as_expected = false;
  EXPECT_THAT(annotations(report), testing::StartsWith("::error title="));
}

// Names that are markup, or no text at all.
Report hostile_report() {
  Report report = broken_report();
  int i = 0;
  for (Result& result : report.results) {
    result.name = "<b>&\"'|`*_]]>\x01\n\xFF\xEF\xBF\xBF::error::%" + std::to_string(i++);
    result.replay = "```\n" + result.name;
    result.verdict.detail += result.name;
    result.kernel = "lib:<" + result.name + ">.so";
  }
  for (Relation& relation : report.relations) relation.scenario = "<\n&|::\xFF";
  report.tool.revision = report.machine.cpu = "<&\"";
  return report;
}

// The exit code of xmllint; -1 where it is not to be had.
int validated(const std::string& document) {
  if (std::system("command -v xmllint >/dev/null 2>&1") != 0) return -1;  // NOLINT(cert-env33-c)
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / ("dcpcheck-junit-" + std::to_string(::getpid()) + ".xml");
  std::ofstream(path, std::ios::binary) << document;
  const std::string command =
      "xmllint --noout --schema '" DCPCHECK_SOURCE_DIR "/reports/schema/junit.xsd' '" + path.string() + "' >/dev/null 2>&1";
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): a path of our own
  std::filesystem::remove(path);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

TEST(Junit, IsWhatItsSchemaSays) {
  const std::string good = rendered("junit", broken_report());
  if (validated(good) == -1) GTEST_SKIP() << "there is no xmllint here (Debian: libxml2-utils)";
  EXPECT_EQ(validated(good), 0);
  EXPECT_EQ(validated(rendered("junit", sample_report())), 0);
  EXPECT_EQ(validated(rendered("junit", Report{})), 0);
  EXPECT_EQ(validated(rendered("junit", hostile_report())), 0);
  for (const auto& [what, other] : std::vector<std::pair<std::string, std::string>>{{" classname=", " klass="},
                                                                                    {"tests=\"", "tests=\"-"},
                                                                                    {"<failure message=", "<failure text="},
                                                                                    {"</testsuites>", ""},
                                                                                    {"<skipped message=", "<ignored message="},
                                                                                    {"time=\"0", "time=\"a"}}) {
    std::string bad = good;
    const std::size_t at = bad.find(what);
    ASSERT_NE(at, std::string::npos) << what;
    EXPECT_NE(validated(bad.replace(at, what.size(), other)), 0) << what;
  }
}

TEST(Junit, CountsAreOfWhatFollows) {
  const std::string text = rendered("junit", broken_report());
  const auto count = [&](const std::string& what) {
    std::size_t number = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++number;
    return std::to_string(number);
  };
  EXPECT_THAT(text,
              HasSubstr("<testsuites name=\"dcpcheck\" tests=\"" + count("<testcase ") + "\" failures=\"" + count("<failure ") +
                        "\" errors=\"" + count("<error ") + "\" skipped=\"" + count("<skipped ") + "\""));
  EXPECT_EQ(count("<error "), "1");
  EXPECT_EQ(count("<skipped "), "2") << "skipped, and inconclusive";
}

TEST(Markdown, NamesAreNoMarkup) {
  const std::string text = rendered("markdown", hostile_report());
  EXPECT_THAT(text, Not(HasSubstr("\x01")));
  std::istringstream lines(text);
  bool code = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "````") code = !code;  // longer than what the name has
    if (!code) {
      EXPECT_THAT(line, Not(HasSubstr("<b>")));
    }
    if (!line.starts_with("| ")) continue;
    std::size_t bars = 0;
    for (std::size_t i = 0; i < line.size(); ++i) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\') ? 1 : 0;
    EXPECT_EQ(bars, 7U) << line;
  }
}

TEST(Markdown, ALongReportStaysAPage) {
  Report report = broken_report();
  const Result wrong = report.results[1];
  for (int i = 0; i < 3000; ++i) report.results.push_back(wrong);
  const std::string text = rendered("markdown", report);
  EXPECT_LT(text.size(), std::size_t{1} << 20);
  EXPECT_THAT(text, HasSubstr("more are in the table"));
  EXPECT_THAT(text, HasSubstr("more are left out here"));
}

TEST(Annotations, AreOneLineEachWhateverTheNames) {
  const std::string text = annotations(hostile_report());
  std::istringstream lines(text);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    EXPECT_TRUE(line.starts_with("::error title=") || line.starts_with("::warning title=")) << line;
  EXPECT_GT(count, 2);
  Report many = broken_report();
  const Result wrong = many.results[1];
  many.results.assign(40, wrong);
  many.relations.clear();
  const std::string shown = annotations(many);
  EXPECT_EQ(std::count(shown.begin(), shown.end(), '\n'), 10);
}

}  // namespace
}  // namespace dcpcheck
