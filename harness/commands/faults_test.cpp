// Every known fault is caught for the reason that it gives, by a case of the corpora whose expectation names it.
#include <gmock/gmock.h>
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "harness/commands/document_test.hpp"
#include "harness/commands/program_test.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {
namespace {

using Names = std::set<std::string>;

Names names_at(const json::Value& value, std::string_view key) {
  Names names;
  for (const json::Value& name : *at(value, key).get<json::Array>()) names.insert(*name.get<std::string>());
  return names;
}

// A case of the corpora, and what it expects of faults.
struct CaseText {
  std::string path, op;
  std::size_t size = 0;
  json::Value expect;
};

std::vector<CaseText> cases(const std::vector<std::string>& folders) {
  std::vector<CaseText> all;
  for (const std::string& folder : folders) {
    for (const auto& entry : std::filesystem::directory_iterator(std::string(DCPCHECK_SOURCE_DIR) + folder)) {
      if (entry.path().extension() != ".json") continue;
      const std::string text = read_file(entry.path());
      const json::Value file = parsed(text);
      const json::Value* expect = file.find("expect");
      if (expect != nullptr) all.push_back({entry.path().string(), text_at(at(file, "case"), "op"), text.size(), *expect});
    }
  }
  return all;
}

using Faults = Program;

TEST_F(Faults, EachIsCaughtForItsReason) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  const std::vector<CaseText> all = cases({"/corpora/edge", "/corpora/issue-54907"});
  const json::Value kernels = parsed(run({"kernels", "--json", "-"}).out);
  std::size_t faults = 0;
  for (const json::Value& kernel : *kernels.get<json::Array>()) {
    const auto* fault = at(kernel, "fault").get<std::string>();
    if (fault == nullptr) {
      EXPECT_EQ(text_at(kernel, "source") + text_at(kernel, "reason") + text_at(kernel, "caught_by"), "");
      continue;
    }
    ++faults;
    const std::string name = text_at(kernel, "name"), reason = text_at(kernel, "reason");
    if (reason == "law") continue;  // LawFaults
    const bool by_value = reason == "inadmissible" || reason == "uninitialised-read" || reason == "race";
    EXPECT_EQ(text_at(kernel, "caught_by"), by_value ? "admissible_values" : "write_set") << name;
    // The shortest case that expects it to be caught so.
    const CaseText* chosen = nullptr;
    for (const CaseText& one : all) {
      const json::Value* entry = one.op == text_at(kernel, "op") ? one.expect.find(*fault) : nullptr;
      if (entry == nullptr || text_at(*entry, "status") != "fail") continue;
      if (!names_at(*entry, "reasons").contains(reason)) continue;
      if (chosen == nullptr || one.size < chosen->size) chosen = &one;
    }
    ASSERT_NE(chosen, nullptr) << "no case of corpora/edge expects " << name << " to be caught for: " << reason;

    const Ended ended = run({"run", chosen->path, "--kernel", name, "--backend", "host", "--json", "-"});
    EXPECT_EQ(ended.code, 1) << name << " " << chosen->path << ended.err;
    const json::Value report = parsed(ended.out);
    const json::Value& result = at(report, "results").get<json::Array>()->front();
    Names reasons, buffers;
    if (reason == "launch-refused") reasons.insert(text_at(result, "reason"));  // nothing ran that could violate anything
    for (const json::Value& violation : *at(result, "violations").get<json::Array>()) {
      reasons.insert(text_at(violation, "reason"));
      if (const json::Value* buffer = violation.find("buffer"); buffer != nullptr && buffer->get<std::string>() != nullptr) {
        buffers.insert(*buffer->get<std::string>());
      }
    }
    const json::Value& expected = *chosen->expect.find(*fault);
    EXPECT_TRUE(reasons.contains(reason)) << name << " " << chosen->path;
    EXPECT_EQ(reasons, names_at(expected, "reasons")) << name << " " << chosen->path;
    EXPECT_EQ(buffers, names_at(expected, "buffers")) << name << " " << chosen->path;
  }
  EXPECT_GE(faults, 90U);
}

// What lies within the bounds of every element, only a law can tell.
TEST_F(Faults, OfALawAreSeenByItAndByNoElement) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  const std::vector<CaseText> all = cases({"/corpora/laws"});
  const json::Value kernels = parsed(run({"kernels", "--json", "-"}).out);
  std::size_t faults = 0;
  for (const json::Value& kernel : *kernels.get<json::Array>()) {
    if (text_at(kernel, "reason") != "law") continue;
    ++faults;
    const std::string name = text_at(kernel, "name"), law = text_at(kernel, "caught_by");
    const auto found = std::find_if(all.begin(), all.end(), [&](const CaseText& one) {
      return one.op == text_at(kernel, "op") && one.expect.find(text_at(kernel, "fault")) != nullptr;
    });
    ASSERT_NE(found, all.end()) << "no case of corpora/laws expects " << name;
    const std::string& path = found->path;
    EXPECT_EQ(run({"run", path, "--kernel", name, "--backend", "host", "--law", law}).code, 1) << name;
    EXPECT_EQ(run({"run", path, "--backend", "host", "--law", law}).code, 0) << name;
    // Element by element there is nothing wrong.
    EXPECT_EQ(run({"run", path, "--kernel", name, "--backend", "host"}).code, 0) << name;
  }
  EXPECT_GE(faults, 16U);
}

}  // namespace
}  // namespace dcpcheck
