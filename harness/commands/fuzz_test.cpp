// Campaigns as a person runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <tuple>

#include "harness/campaign/journal.hpp"
#include "harness/commands/document_test.hpp"
#include "harness/commands/program_test.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

class FuzzTest : public Program {
 protected:
  // `words` after the verb; into the folder `out`.
  std::vector<std::string> words(const std::string& out, const std::vector<std::string>& more) const {
    std::vector<std::string> all{"fuzz", "--backend", "host", "--no-self-test", "--out", path(out)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Ended fuzz(const std::string& out, const std::vector<std::string>& more) const { return run(words(out, more)); }

  json::Value report(const std::string& out) const {
    return json::parse(read_file(path(out + "/report.json")), out, {1 << 24, 64});
  }

  // The report but for who ran what, where and how long.
  std::string told(const std::string& out) const {
    json::Value document = report(out);
    json::Object kept;
    for (const auto& [key, value] : *document.get<json::Object>())
      if (key != "runs") kept.emplace_back(key, value);
    return json::dump(kept, 1);
  }

  std::map<std::string, std::string> findings(const std::string& out) const {
    std::map<std::string, std::string> files;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(path(out + "/findings"), none))
      files[entry.path().filename().string()] = read_file(entry.path());
    return files;
  }

  static std::vector<pid_t> children_of(pid_t parent) {
    std::vector<pid_t> children;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const std::string stat = read_file(entry.path() / "stat");  // "<pid> (<name>) <state> <parent> …"
      const std::size_t end = stat.rfind(')');
      if (end != std::string::npos && end + 4 < stat.size() && std::atoi(stat.c_str() + end + 4) == parent)
        children.push_back(std::atoi(name.c_str()));
    }
    return children;
  }

  static std::int64_t at(const json::Value& value, const std::vector<const char*>& keys) {
    const json::Value* now = &value;
    for (const char* key : keys) {
      now = now->find(key);
      if (now == nullptr) return 0;
    }
    const auto* number = now->get<std::int64_t>();
    return number == nullptr ? -1 : *number;
  }
};

const std::vector<std::string> kKernel{"--kernel", "builtin:fused_norm_rope@k_gated", "--seed", "54907"};

// The same where how small the findings are is not what is asked.
const std::vector<std::string> kFaulty{"--kernel", "builtin:fused_norm_rope@k_gated", "--seed", "54907", "--shrink-evals",
                                       "15"};

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_F(FuzzTest, RightKernelsPassAndTheReportSaysWhatWasRun) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  const Ended ended =
      fuzz("c", {"--op", "fused_q", "--op", "compute_slot_mapping", "--cases", "60", "--seed", "1", "--jobs", "2"});
  EXPECT_EQ(ended.code, 0) << ended.err << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("60 cases ("));
  EXPECT_THAT(ended.out, HasSubstr("0 findings"));
  const json::Value document = report("c");
  EXPECT_EQ(at(document, {"tally", "cases"}), 60);
  EXPECT_EQ(at(document, {"tally", "by_op", "fused_q", "pass"}), 30);
  EXPECT_TRUE(findings("c").empty());
}

TEST_F(FuzzTest, AFaultIsFoundMadeSmallAndReplayedByItsLine) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  const Ended ended = fuzz("c", with(kKernel, {"--cases", "100"}));
  EXPECT_EQ(ended.code, 1) << ended.err << ended.out;
  const auto files = findings("c");
  ASSERT_FALSE(files.empty());
  bool smallest = false;
  for (const auto& [name, text] : files) {
    const json::Value document = json::parse(text, name);
    const json::Value* check = document.find("finding")->find("check");
    if (*check->find("law") != json::Value("") || *check->find("reason") != json::Value("unwritten")) continue;
    const Ended replay = run({"run", "--backend", "host", "--no-self-test", "--kernel", "builtin:fused_norm_rope@k_gated",
                              path("c/findings/" + name)});
    EXPECT_EQ(replay.code, 1) << replay.err;
    EXPECT_THAT(replay.out, HasSubstr("unwritten"));
    const json::Value* geometry = document.find("case");
    smallest = smallest || json::dump(*geometry).find("\"world_size\":2") != std::string::npos;
    EXPECT_THAT(ended.out, HasSubstr("findings/" + name));
  }
  EXPECT_TRUE(smallest) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("smallest case: 1 token, 2 ranks")) << ended.out;
}

TEST_F(FuzzTest, NeitherJobsNorShardsChangeWhatIsFound) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  const std::vector<std::string> campaign = with(kFaulty, {"--cases", "96"});
  ASSERT_EQ(fuzz("one", with(campaign, {"--jobs", "1"})).code, 1);
  ASSERT_EQ(fuzz("two", with(campaign, {"--jobs", "2"})).code, 1);
  EXPECT_EQ(told("one"), told("two"));
  EXPECT_EQ(findings("one"), findings("two"));
  std::vector<std::string> merge{"merge", "--out", path("merged")};
  for (const char* shard : {"0/3", "1/3", "2/3"}) {
    const std::string out = std::string("shard") + shard[0];
    EXPECT_LE(fuzz(out, with(campaign, {"--shard", shard})).code, 1);
    merge.push_back(path(out));
  }
  const Ended ended = run(merge);
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_EQ(told("one"), told("merged"));
  EXPECT_EQ(findings("one"), findings("merged"));
  const std::string first = told("merged");
  EXPECT_EQ(run(merge).code, 1);
  EXPECT_EQ(told("merged"), first);
  merge.pop_back();
  const Ended missing = run(merge);
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, HasSubstr("shard 2 of 3 is missing"));
}

// A kernel that ends or holds its process has failed its case, and nothing else.
TEST_F(FuzzTest, WhateverAKernelDoesIsAFindingAndTheOtherResultsAreTheSame) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  const std::vector<std::string> campaign{"--kernel",       library("misbehaves"),
                                          "--seed",         "7",
                                          "--cases",        "16",
                                          "--jobs",         "2",
                                          "--shrink-evals", "3",
                                          "--memory",       "256MiB",
                                          "--law",          "admissible_values",
                                          "--law",          "write_set"};
  ::unsetenv("DCPCHECK_MISBEHAVES");
  const Ended undisturbed = fuzz("right", campaign);
  ASSERT_EQ(undisturbed.code, 0) << undisturbed.err << undisturbed.out;
  const json::Value right = report("right");
  const std::int64_t cases = at(right, {"tally", "cases"});
  std::optional<std::int64_t> ended_early;  // how many cases end their process
  for (const auto& [how, status, says] :
       std::vector<std::tuple<std::string, std::string, std::string>>{{"wrong", "fail", "inadmissible"},
                                                                      {"rounding", "fail", "floating-point"},
                                                                      {"segfault", "crash", "signal 11"},
                                                                      {"abort", "crash", "signal 6"},
                                                                      {"memory", "crash", "crash"},
                                                                      {"exit", "crash", "exit code 0"},
                                                                      {"heap", "crash", "crash"},
                                                                      {"stdout", "crash", "garbage"},
                                                                      {"loop", "hang", "hang"}}) {
    ::setenv("DCPCHECK_MISBEHAVES", how.c_str(), 1);
    const Ended ended =
        fuzz(how, with(campaign, how == "loop" ? std::vector<std::string>{"--case-limit", "2s", "--start-limit", "2s"}
                                               : std::vector<std::string>{}));
    ::unsetenv("DCPCHECK_MISBEHAVES");
    EXPECT_EQ(ended.code, 1) << how << ended.err;
    EXPECT_THAT(ended.out, HasSubstr(says)) << how;
    // An element may be wrong in two ways, a broken heap be noticed in several, and garbage come before the end or after it.
    EXPECT_GE(findings(how).size(), 1U) << how << ended.out;
    if (status != "fail" && how != "heap" && how != "stdout") {
      EXPECT_EQ(findings(how).size(), 1U) << how << ended.out;
    }
    const json::Value document = report(how);
    EXPECT_EQ(at(document, {"tally", "cases"}), cases) << how;
    const std::int64_t failed = at(document, {"tally", "by_status", status.c_str()});
    EXPECT_GT(failed, 0) << how << ended.out;
    const std::int64_t others = at(document, {"tally", "by_status", "pass"}) + at(document, {"tally", "by_status", "skipped"});
    EXPECT_EQ(others + failed, cases) << how << ended.out;
    if (status == "fail") continue;
    EXPECT_EQ(failed, ended_early.value_or(failed)) << how;
    ended_early = failed;
  }
}

// The law's launches of a request alone end the process: that the case had failed before is not lost with it.
TEST_F(FuzzTest, WhatFailedBeforeALawEndsTheProcessIsToldToo) {
  const std::string two_of_sixty = file("two-of-sixty.json", R"({"schema": "dcpcheck.case/1", "name": "two of sixty", "source":
"a test", "case": {"op": "fused_eh_norm", "seed": "0000000000000001", "geometry": {"batch": [{"uncached": 60}, {"uncached": 60}]},
"params": {"hidden_size": 8, "embeds_eps": 0.5, "hidden_eps": 0.25}}})");
  ::setenv("DCPCHECK_MISBEHAVES", "wrong, and small ones end the process", 1);
  const Ended ended = fuzz("c", {"--kernel", library("misbehaves"), "--from", two_of_sixty, "--seed", "7", "--cases", "1",
                                 "--jobs", "1", "--shrink-evals", "2"});
  ::unsetenv("DCPCHECK_MISBEHAVES");
  EXPECT_EQ(ended.code, 1) << ended.err;
  std::multimap<std::string, std::string> found;  // law, reason
  for (const auto& [name, text] : findings("c")) {
    const json::Value document = json::parse(text, name);
    const json::Value& signature = dcpcheck::at(dcpcheck::at(document, "finding"), "signature");
    found.emplace(text_at(signature, "law"), text_at(signature, "reason"));
  }
  ASSERT_EQ(found.count(""), 1U) << ended.out;
  EXPECT_THAT(found.find("")->second, HasSubstr("inadmissible"));
  ASSERT_EQ(found.count("batch_neighbours"), 1U) << ended.out;
  EXPECT_THAT(found.find("batch_neighbours")->second,
              AnyOf(HasSubstr("signal 11"), HasSubstr("exit code")));  // a sanitizer exits
}

TEST_F(FuzzTest, WhatFlickersIsToldAsThat) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  ::setenv("DCPCHECK_MISBEHAVES", "flicker", 1);
  const Ended ended = fuzz(
      "c", {"--kernel", library("misbehaves"), "--seed", "7", "--cases", "200", "--jobs", "2", "--law", "admissible_values"});
  ::unsetenv("DCPCHECK_MISBEHAVES");
  // Which process has an even number is the system's choice: either it flickered, or it was always so.
  EXPECT_LE(ended.code, 1) << ended.err;
  for (const auto& [name, text] : findings("c")) {
    const json::Value document = json::parse(text, name);
    const json::Value* reruns = document.find("finding")->find("reruns");
    EXPECT_GT(at(*reruns, {"fail"}) + at(*reruns, {"pass"}), 0) << text;
  }
}

TEST_F(FuzzTest, KilledAnywhereItGoesOnToTheSameEnd) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  const std::vector<std::string> campaign = with(kFaulty, {"--cases", "250", "--jobs", "2"});
  ASSERT_EQ(fuzz("whole", campaign).code, 1);
  std::minstd_rand random(static_cast<unsigned>(::getpid()));
  fs::create_directories(path("killed"));
  const char* const wanted = std::getenv("DCPCHECK_KILLS");
  const int most = wanted == nullptr ? 10 : std::atoi(wanted);
  int kills = 0;
  Ended ended;
  for (int round = 0; round < 2 * most + 2; ++round) {
    const bool begun = fs::exists(path("killed/journal")) && fs::file_size(path("killed/journal")) > 0;
    std::vector<std::string> line = words("killed", campaign);
    if (begun) line.emplace_back("--resume");
    const pid_t child = start(line);
    // Workers first, at least one of which goes on in another's place; then the campaign itself.
    for (const bool worker : {true, true, false}) {
      if (kills >= most) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(150 + random() % 700));
      const std::vector<pid_t> children = worker ? children_of(child) : std::vector<pid_t>{child};
      if (!children.empty() && ::kill(children[random() % children.size()], SIGKILL) == 0) ++kills;
    }
    ended = wait(child);
    if (ended.signal == 0) break;
  }
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_GE(kills, std::min(most, 3));
  EXPECT_EQ(told("killed"), told("whole"));
  EXPECT_EQ(findings("killed"), findings("whole"));
}

TEST_F(FuzzTest, AFolderIsOneCampaigns) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  ASSERT_EQ(fuzz("c", {"--op", "compute_slot_mapping", "--cases", "20", "--seed", "1"}).code, 0);
  const Ended again = fuzz("c", {"--op", "compute_slot_mapping", "--cases", "20", "--seed", "1"});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("--resume"));
  const Ended other = fuzz("c", {"--op", "compute_slot_mapping", "--cases", "20", "--seed", "2", "--resume"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("another --seed"));
  const Ended more = fuzz("c", {"--cases", "30", "--resume"});
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_EQ(at(report("c"), {"tally", "cases"}), 30);
  EXPECT_EQ(fuzz("none", {"--resume"}).code, 2);
  Journal held(path("c/journal"));
  const Ended refused = fuzz("c", {"--cases", "40", "--resume"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("another campaign"));
}

TEST_F(FuzzTest, WhatIsKnownIsNotRedUntilItsDayIsPast) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  const auto known = [&](const std::string& expires) {
    return file("known.json",
                R"([{"kernel": "builtin:fused_norm_rope@k_gated", "issue": "https://example.org/54907", "expires": ")" +
                    expires + "\"}]");
  };
  const Ended green = fuzz("a", with(kFaulty, {"--cases", "40", "--known", known("2999-01-01")}));
  EXPECT_EQ(green.code, 0) << green.out << green.err;
  EXPECT_THAT(green.out, HasSubstr("https://example.org/54907"));
  const Ended red = fuzz("b", with(kFaulty, {"--cases", "40", "--known", known("2020-01-01")}));
  EXPECT_EQ(red.code, 1);
  EXPECT_THAT(red.out, HasSubstr("expired"));
  for (const std::string wrong : {"soon", "2027-02-30", "2027-13-01", "2027-1-1", ""})
    EXPECT_EQ(fuzz("d", with(kFaulty, {"--cases", "4", "--known", known(wrong)})).code, 2) << wrong;
  const std::string nowhere = file("nowhere.json", R"([{"op": "fused_q", "issue": " ", "expires": "2999-01-01"}])");
  EXPECT_THAT(fuzz("e", with(kFaulty, {"--cases", "4", "--known", nowhere})).err, HasSubstr("/0/issue"));
}

TEST_F(FuzzTest, StoredCasesComeFirstAndAFindingStaysInTheCorpus) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  ASSERT_EQ(fuzz("c", with(kFaulty, {"--cases", "60"})).code, 1);
  const auto files = findings("c");
  ASSERT_FALSE(files.empty());
  const std::string name = files.begin()->first;
  const Ended moved =
      run({"corpus", "add", path("c/findings/" + name), "--to", path("corpus/regressions"), "--name", "vllm-54907"});
  EXPECT_EQ(moved.code, 0) << moved.err;
  EXPECT_FALSE(fs::exists(path("c/findings/" + name)));
  const Ended again = fuzz("d", with(kFaulty, {"--cases", "1", "--corpus", path("corpus")}));
  EXPECT_EQ(again.code, 1) << again.err;
  EXPECT_THAT(again.out, HasSubstr("vllm-54907"));
  const Ended right = fuzz("e", {"--op", "fused_norm_rope", "--seed", "3", "--cases", "1", "--corpus", path("corpus")});
  EXPECT_EQ(right.code, 0) << right.out << right.err;
  EXPECT_EQ(at(report("e"), {"tally", "cases"}), 2);
}

TEST_F(FuzzTest, ACorpusOfSeveralHasEachOnce) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  ASSERT_EQ(fuzz("a", with(kFaulty, {"--cases", "60"})).code, 1);
  ASSERT_EQ(
      fuzz("b", {"--kernel", "builtin:fused_norm_rope@k_gated", "--seed", "2", "--cases", "60", "--shrink-evals", "20"}).code,
      1);
  const Ended ended = run({"corpus", "merge", path("a/findings"), path("b/findings"), "--out", path("all")});
  EXPECT_EQ(ended.code, 0) << ended.err;
  std::set<std::string> names;
  for (const char* out : {"a", "b"})
    for (const auto& entry : findings(out)) names.insert(entry.first);
  std::set<std::string> merged;
  for (const auto& entry : findings("all")) merged.insert(entry.first);
  EXPECT_EQ(merged, names);
}

TEST_F(FuzzTest, ShrinkDoesByHandWhatACampaignDoes) {
  const std::string case_file = std::string(DCPCHECK_SOURCE_DIR) + "/corpora/issue-54907/512-dcp4.json";
  const Ended ended =
      run({"shrink", case_file, "--kernel", "@k_gated", "--backend", "host", "--no-self-test", "--out", path("small.json")});
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("1 token on 2 ranks after"));
  EXPECT_EQ(run({"run", "--no-self-test", "--backend", "host", "--kernel", "fused_norm_rope@k_gated", path("small.json")}).code,
            1);
  const Ended right = run({"shrink", path("small.json"), "--kernel", "fused_norm_rope", "--backend", "host", "--no-self-test"});
  EXPECT_EQ(right.code, 0) << right.err;
  EXPECT_THAT(right.out, HasSubstr("nothing to make small"));
}

TEST_F(FuzzTest, OptionsComeFromAFileAndTheCommandLineGoesBeforeIt) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  const std::string config =
      file("dcpcheck.toml", "cases = 10\nseed = 5\nop = [\"compute_slot_mapping\", \"fused_q\"]\nshare = \"fused_q=1\"\n");
  EXPECT_EQ(fuzz("c", {"--config", config, "--cases", "52"}).code, 0);
  EXPECT_EQ(at(report("c"), {"tally", "by_op", "fused_q", "pass"}), 1);
  const Ended wrong = fuzz("d", {"--config", file("bad.toml", "case = 10\n")});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean --cases?"));
}

TEST_F(FuzzTest, BadInputIsOneSentence) {
  for (const auto& [words, says] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{{{"--time", "soon"}, "--time takes a time"},
                                                                     {{"--time", "0"}, "--time takes a time"},
                                                                     {{"--jobs", "0"}, "--jobs takes"},
                                                                     {{"--shard", "3/2"}, "--shard"},
                                                                     {{"--op", "fused_k"}, "did you mean fused_q?"},
                                                                     {{"--law", "nothing"}, "there is no law"},
                                                                     {{"--share", "fused_q=0"}, "--share takes"},
                                                                     {{"--set", "dcp.world_size=2"}, "--from"},
                                                                     {{"--kernel", "lib:/nowhere.so"}, "/nowhere.so"},
                                                                     {{"--corpus", "/nowhere"}, "/nowhere"}}) {
    const Ended ended = fuzz("c", with({"--cases", "1"}, words));
    EXPECT_EQ(ended.code, 2) << words.front() << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(says)) << words.front();
  }
}

}  // namespace
}  // namespace dcpcheck
