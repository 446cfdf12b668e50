// The stored cases: that all of them load and are told apart, and what comes of those from elsewhere.
#include <gmock/gmock.h>
#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <set>

#include "harness/commands/document_test.hpp"
#include "harness/commands/program_test.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

// Sanitizers make the large cases take minutes: there the small ones, which run the same code, stand for them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int64_t kMostTokens = 64;
#else
constexpr std::int64_t kMostTokens = std::numeric_limits<std::int64_t>::max();
#endif

// The cases of a folder, by path. Goldens are no cases.
std::vector<fs::path> cases_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".json" && entry.path().string().find("/golden/") == std::string::npos)
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string text_of(const json::Value& value) { return *value.get<std::string>(); }

// The rows of a case's launch, without padding.
std::int64_t tokens_of(const fs::path& file) {
  const json::Value stored = parsed(read_file(file));
  std::int64_t tokens = 0;
  for (const json::Value& request : *at(at(at(stored, "case"), "geometry"), "batch").get<json::Array>())
    if (const json::Value* uncached = request.find("uncached")) tokens += *uncached->get<std::int64_t>();
  return tokens;
}

std::vector<std::string> with_cases(std::vector<std::string> words, const std::vector<fs::path>& files) {
  for (const fs::path& file : files) words.push_back(file.string());
  return words;
}

class Corpora : public Program {};

TEST_F(Corpora, EveryCaseLoadsHasItsFilesNameAndIsThereOnce) {
  const std::vector<fs::path> files = cases_in(kCorpora);
  const Ended ended = run(with_cases({"run", "--list"}, files));
  ASSERT_EQ(ended.code, 0) << ended.err;
  std::map<std::string, std::string> by_id;
  std::size_t listed = 0;
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(' ')) continue;           // a kernel that would run it
    const std::size_t after_id = line.find("  ");  // id, path and name, two spaces apart
    const std::size_t before_name = line.rfind("  ");
    ASSERT_LT(after_id, before_name) << line;
    const std::string id = line.substr(0, after_id);
    const std::string reference = line.substr(after_id + 2, before_name - after_id - 2);
    const std::string name = line.substr(before_name + 2);
    EXPECT_EQ(name, fs::path(reference).stem().string()) << reference;
    const auto [other, first] = by_id.emplace(id, reference);
    EXPECT_TRUE(first) << reference << " is the same case as " << other->second;
    ++listed;
  }
  EXPECT_EQ(listed, files.size());
}

TEST_F(Corpora, EachRegressionSaysWhichReportItIsFrom) {
  const std::vector<fs::path> files = cases_in(kCorpora / "regressions");
  ASSERT_GE(files.size(), 60U);
  for (const fs::path& file : files) {
    const std::string name = file.stem().string();
    const json::Value stored = parsed(read_file(file));
    const std::string source = text_of(at(stored, "source"));
    // <project>-<number of the report>, or that and -2, -3 …
    std::string number;
    std::istringstream parts(name);
    for (std::string part; std::getline(parts, part, '-') && number.empty();)
      if (std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) number = part;
    ASSERT_FALSE(number.empty()) << name;
    EXPECT_THAT(source, HasSubstr(number)) << name;
    const std::size_t colon = source.find(": ");
    ASSERT_NE(colon, std::string::npos) << name;
    EXPECT_GT(source.size() - colon, 30U) << name << " does not say what went wrong";
  }
}

TEST_F(Corpora, RegressionsPassOnTheFixedKernels) {
  const Ended ended = run({"run", "--backend", "host", (kCorpora / "regressions").string()});
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.err, IsEmpty());
}

std::set<std::string> texts_at(const json::Value& value, std::string_view key) {
  std::set<std::string> texts;
  for (const json::Value& item : *at(value, key).get<json::Array>()) texts.insert(text_of(item));
  return texts;
}

// What a fault came to, said as a case's `expect` says it.
void expect_caught(const json::Value& expected, const json::Value& result) {
  std::set<std::string> reasons, buffers;
  for (const json::Value& violation : *at(result, "violations").get<json::Array>()) {
    reasons.insert(text_of(at(violation, "reason")));
    buffers.insert(text_of(at(violation, "buffer")));
  }
  // A refused launch has a reason and no violation.
  if (reasons.empty()) reasons.insert(text_of(at(result, "reason")));
  EXPECT_EQ(text_of(at(expected, "status")), "fail");
  EXPECT_EQ(text_of(at(result, "status")), "fail");
  EXPECT_EQ(buffers, texts_at(expected, "buffers"));
  EXPECT_EQ(reasons, texts_at(expected, "reasons"));
}

// A case names the fault that was reported, if it is a known one, and no other that it happens to catch.
TEST_F(Corpora, RegressionsCatchTheFaultsThatTheyName) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  std::map<std::string, std::vector<fs::path>> by_kernel;
  std::map<std::string, json::Value> expectations;
  for (const char* folder : {"regressions", "kernel-matrix"}) {
    for (const fs::path& file : cases_in(kCorpora / folder)) {
      const json::Value stored = parsed(read_file(file));
      const json::Value* expect = stored.find("expect");
      if (expect == nullptr) continue;
      for (const auto& [fault, expected] : *expect->get<json::Object>()) {
        const std::string kernel = "builtin:" + text_of(at(at(stored, "case"), "op")) + "@" + fault;
        by_kernel[kernel].push_back(file);
        expectations.emplace(kernel + " " + file.string(), expected);
      }
    }
  }
  EXPECT_GE(by_kernel.size(), 20U);
  for (const auto& [kernel, files] : by_kernel) {
    const Ended ended =
        run(with_cases({"run", "--backend", "host", "--no-self-test", "--kernel", kernel, "--json", "-"}, files));
    ASSERT_EQ(ended.code, 1) << kernel << ended.err;
    const json::Value report = parsed(ended.out);
    const json::Array& results = *at(report, "results").get<json::Array>();
    ASSERT_EQ(results.size(), files.size()) << kernel;
    for (std::size_t i = 0; i < files.size(); ++i) {
      const std::string what = kernel + " " + files[i].string();
      SCOPED_TRACE(what);
      EXPECT_EQ(text_of(at(results[i], "name")), files[i].stem().string());
      expect_caught(expectations.at(what), results[i]);
    }
  }
}

TEST_F(Corpora, TheKernelMatrixPasses) {
  const std::vector<fs::path> all = cases_in(kCorpora / "kernel-matrix");
  EXPECT_EQ(all.size(), 67U);
  std::vector<fs::path> files;
  std::copy_if(all.begin(), all.end(), std::back_inserter(files),
               [](const fs::path& file) { return tokens_of(file) <= kMostTokens; });
  ASSERT_GE(files.size(), all.size() / 2);
  const Ended ended = run(with_cases({"run", "--backend", "host", "--json", path("report.json")}, files));
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  std::size_t passed = 0;
  const json::Value report = parsed(read_file(path("report.json")));
  for (const json::Value& result : *at(report, "results").get<json::Array>())
    if (text_of(at(result, "status")) == "pass") ++passed;
  EXPECT_EQ(passed, files.size());
}

}  // namespace
}  // namespace dcpcheck
