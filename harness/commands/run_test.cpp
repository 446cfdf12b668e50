// `run` and `repro`: what comes of good and bad cases, kernels, disks and signals.
#include <gmock/gmock.h>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <thread>

#include "harness/commands/document_test.hpp"
#include "harness/commands/program_test.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A small case of fused_norm_rope under DCP4.
std::string small_case(std::int64_t tokens = 24) {
  return R"({"schema": "dcpcheck.case/1", "name": "small-dcp4", "source": "a test", "case": {"op": "fused_norm_rope",
"seed": "0000000000000001", "geometry": {"batch": [{"uncached": )" +
         std::to_string(tokens) +
         R"(}], "tp": 4, "dcp": {"world_size": 4}, "caches": {"mla": {}, "indexer": {"slot_mapping": "same"}}},
"params": {"q_lora_rank": 128, "kv_lora_rank": 64, "qk_rope_head_dim": 32, "index_head_dim": 64, "index_rope_dim": 32,
"index_topk": 64, "mla_layout": "bf16"}}})";
}

// The report without what may differ between two runs of the same.
std::vector<std::string> digests_in(const json::Value& report) {
  std::vector<std::string> digests;
  for (const json::Value& result : *at(report, "results").get<json::Array>())
    digests.push_back(text_at(result, "name") + " " + text_at(result, "kernel") + " " + json::dump(at(result, "digests")));
  return digests;
}

// Whether the process has blocked the signal to wait for it: before that it ends it as it would end any program.
bool waits_for(pid_t process, int signal) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigBlk:")) return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  return false;
}

class Run : public Program {
 protected:
  std::size_t reports() const {
    return static_cast<std::size_t>(
        std::count_if(std::filesystem::directory_iterator(folder_), {}, [](const std::filesystem::directory_entry& entry) {
          return entry.path().filename().string().find("report") != std::string::npos;
        }));
  }
};

TEST_F(Run, APassIsZero) {
  const std::string small = file("small.json", small_case());
  const Ended ended = run({"run", "--backend", "host", small});
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.err, IsEmpty());
  // The replay line stands before the run, and again last.
  const std::string replay = std::string(DCPCHECK_PROGRAM) +
                             " run --backend host --kernel builtin:fused_norm_rope --seed 0000000000000001 " + small + "\n";
  EXPECT_TRUE(ended.out.starts_with(replay)) << ended.out;
  EXPECT_TRUE(ended.out.ends_with(replay)) << ended.out;
}

TEST_F(Run, AFaultIsOneAndSaysWhatIsUnwritten) {
  const Ended ended = run({"--kernel", "@k_gated", "run", file("small.json", small_case()), "--backend", "host"});
  EXPECT_EQ(ended.code, 1) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("kv_c_out and k_pe_out: unwritten on ranks 0-3, 18 of 24 token rows each"));
  EXPECT_THAT(ended.out, HasSubstr("whose slot is negative"));
}

TEST_F(Run, JsonOnStdoutStandsAlone) {
  const Ended ended =
      run({"run", file("small.json", small_case()), "--backend", "host", "--json", "-", "--kernel", "fused_norm_rope@k_gated"});
  EXPECT_EQ(ended.code, 1);
  const json::Value report = parsed(ended.out);
  const json::Value& result = at(report, "results").get<json::Array>()->front();
  EXPECT_EQ(text_at(result, "status"), "fail");
  EXPECT_EQ(text_at(result, "reason"), "unwritten");
  EXPECT_EQ(text_at(result, "fault"), "k_gated");
  EXPECT_EQ(*at(at(report, "summary"), "ok").get<bool>(), false);
  EXPECT_THAT(ended.err, HasSubstr("1 result: 1 fail"));
}

TEST_F(Run, TheReplayLineRunsTheSameCase) {
  const std::string small = file("small.json", small_case());
  const json::Value first = parsed(run({"run", small, "--seed", "12345", "--json", "-", "--backend", "host"}).out);
  const json::Value& result = at(first, "results").get<json::Array>()->front();
  EXPECT_EQ(text_at(first, "seed"), "0000000000003039");
  std::vector<std::string> words;
  std::istringstream replay(text_at(result, "replay"));
  for (std::string word; replay >> word;) words.push_back(word);
  words.erase(words.begin());
  words.insert(words.end(), {"--json", "-"});
  const json::Value again = parsed(run(words).out);
  EXPECT_EQ(text_at(at(again, "results").get<json::Array>()->front(), "id"), text_at(result, "id"));
  EXPECT_EQ(digests_in(again), digests_in(first));
}

TEST_F(Run, FoldersAreReadByPath) {
  file("cases/b/two.json", small_case());
  file("cases/a.json", small_case());
  file("cases/notes.txt", "no case");
  const Ended ended = run({"run", "--list", path("cases")});
  EXPECT_EQ(ended.code, 0);
  EXPECT_LT(ended.out.find("cases/a.json"), ended.out.find("cases/b/two.json"));
  EXPECT_THAT(ended.out, Not(HasSubstr("notes")));
}

TEST_F(Run, AnEmptyFolderVouchesForNothing) {
  std::filesystem::create_directories(path("empty"));
  const Ended ended = run({"run", path("empty"), "--backend", "host"});
  EXPECT_EQ(ended.code, 3);
  EXPECT_THAT(ended.err, HasSubstr("nothing was vouched for"));
}

TEST_F(Run, AKernelOfAnotherOpIsSkipped) {
  const Ended ended = run({"run", file("small.json", small_case()), "--kernel", "compute_slot_mapping", "--backend", "host",
                           "--json", path("report")});
  EXPECT_EQ(ended.code, 77);
  EXPECT_THAT(ended.out, HasSubstr("is a kernel of compute_slot_mapping"));
  EXPECT_EQ(text_at(at(parsed(read_file(path("report"))), "results").get<json::Array>()->front(), "status"), "skipped");
}

struct BadFile {
  std::string name, text, says;
};

TEST_F(Run, ABadFileIsOneSentenceAndExitTwo) {
  const std::string good = small_case();
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  const std::vector<BadFile> files{
      {"malformed.json", "{\"schema\": nonsense}", ""},
      {"truncated.json", good.substr(0, good.size() / 2), ""},
      {"empty.json", "", ""},
      {"trailing.json", good + "{}", ""},
      {"oversized.json", good + std::string(std::size_t{1} << 20, ' '), ""},
      {"deep.json", std::string(100'000, '[') + std::string(100'000, ']'), ""},
      {"deeper.json", replaced(R"("source": "a test")", "\"source\": " + std::string(40, '[') + std::string(40, ']')), ""},
      {"not_utf8.json", replaced("a test", "a \xFF test"), ""},
      {"duplicate.json", replaced(R"("tp": 4)", R"("tp": 4, "tp": 4)"), "tp"},
      {"unknown_op.json", replaced(R"("op": "fused_norm_rope")", R"("op": "fused_norm_ropes")"), "fused_norm_ropes"},
      {"unknown_field.json", replaced("\"tp\": 4", "\"tpp\": 4"), "tpp"},
      {"no_divisor.json", replaced("\"world_size\": 4", "\"world_size\": 3"), "3"},
      {"schema.json", replaced("dcpcheck.case/1", "dcpcheck.case/9"), "dcpcheck.case/9"}};
  for (const BadFile& bad : files) {
    const std::string at = file(bad.name, bad.text);
    const Ended ended = run({"run", at, "--backend", "host", "--json", path("report.json")});
    EXPECT_EQ(ended.code, 2) << bad.name << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(bad.name));
    EXPECT_THAT(ended.err, HasSubstr(bad.says));
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    EXPECT_LT(ended.err.size(), 500U) << ended.err;
    EXPECT_THAT(ended.out, IsEmpty());
    EXPECT_EQ(reports(), 0U);
  }
}

TEST_F(Run, MissingFilesAndAllBadOnesAreNamedBeforeAnythingRuns) {
  const std::string good = file("good.json", small_case());
  const std::string bad = file("bad.json", "{");
  const Ended ended = run({"run", good, path("missing.json"), bad, "--backend", "host"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("missing.json: there is no such file or folder"));
  EXPECT_THAT(ended.err, HasSubstr("bad.json"));
  EXPECT_THAT(ended.out, IsEmpty());
}

TEST_F(Run, ACaseOverTheMemoryBudgetIsRefused) {
  const std::string small = file("small.json", small_case());
  const Ended ended = run({"run", small, "--memory", "64KiB", "--backend", "host"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("small.json"));
  EXPECT_THAT(ended.out, IsEmpty());
  const Ended huge = run({"run", file("huge.json", small_case(2'000'000'000)), "--backend", "host"});
  EXPECT_EQ(huge.code, 2);
  EXPECT_THAT(huge.err, HasSubstr("huge.json"));
}

TEST_F(Run, AFullDiskIsAFailureOfTheHarness) {
  const std::string small = file("small.json", small_case());
  const Ended to_file = run({"run", small, "--backend", "host", "--json", "/dev/full"});
  EXPECT_EQ(to_file.code, 99);
  EXPECT_THAT(to_file.err, HasSubstr("/dev/full"));
  EXPECT_THAT(to_file.out, HasSubstr("1 result: 1 pass"));  // what was found is not lost
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--json", "-"}}) {
    std::vector<std::string> words{"run", small, "--backend", "host"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended to_stdout = run(words, "/dev/full");
    EXPECT_EQ(to_stdout.code, 99);
    EXPECT_THAT(to_stdout.err, HasSubstr("stdout"));
  }
}

TEST_F(Run, ASignalEndsItByThatSignalWithoutAReport) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  for (const int signal : {SIGINT, SIGTERM}) {
    const pid_t child = start({"repro", "--backend", "host", "--json", path("report.json"), "--threads", "1"});
    // repro takes seconds: from here on this is in the middle, however slow the start was.
    for (int i = 0; i < 6000 && !waits_for(child, signal); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_EQ(::kill(child, signal), 0);
    const Ended ended = wait(child);
    EXPECT_EQ(ended.signal, signal) << "exit code " << ended.code << ", " << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("stopped by SIG"));
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    EXPECT_EQ(reports(), 0U);
  }
}

TEST_F(Run, DigestsDoNotDependOnThreads) {
  const std::string small = file("small.json", small_case(100));
  std::vector<std::vector<std::string>> digests;
  for (const std::string threads : {"1", "2", "16"}) {
    const Ended ended = run({"run", small, "--threads", threads, "--backend", "host", "--json", "-", "--kernel", "@k_gated",
                             "--kernel", "fused_norm_rope"});
    EXPECT_EQ(ended.code, 1) << ended.err;
    digests.push_back(digests_in(parsed(ended.out)));
    EXPECT_EQ(digests.back().size(), 2U);
  }
  EXPECT_EQ(digests[0], digests[1]);
  EXPECT_EQ(digests[0], digests[2]);
}

TEST_F(Run, AnUnequalSeedIsAnotherCase) {
  const std::string small = file("small.json", small_case());
  const auto report = [&](const std::string& seed) {
    return parsed(run({"run", small, "--seed", seed, "--json", "-", "--backend", "host"}).out);
  };
  EXPECT_EQ(digests_in(report("0000000000000002")), digests_in(report("2")));
  EXPECT_EQ(digests_in(report("0x2")), digests_in(report("2")));
  EXPECT_NE(digests_in(report("3")), digests_in(report("2")));
}

// Sanitizers make the larger scenarios take minutes: there the smallest one stands for them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kScenarios = 1;
#else
constexpr int kScenarios = 3;
#endif

TEST_F(Run, ReproFindsEverythingAsExpected) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  std::vector<std::string> words = {"repro", "--backend", "host", "--json", path("report.json")};
  if (kScenarios == 1) {
    std::filesystem::create_directories(path("corpus"));
    for (const char* name : {"512-dcp1", "512-dcp4", "tokens-512-dcp1", "tokens-512-dcp4"}) {
      const std::string file = std::string(name) + ".json";
      std::filesystem::copy_file(std::string(DCPCHECK_SOURCE_DIR "/corpora/issue-54907/") + file, path("corpus/" + file));
    }
    words.insert(words.end(), {"--corpus", path("corpus")});
  }
  const Ended ended = run(words);
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.err, IsEmpty());
  const json::Value report = parsed(read_file(path("report.json")));
  std::map<std::string, int> count;
  for (const json::Value& result : *at(report, "results").get<json::Array>()) {
    EXPECT_TRUE(*at(result, "as_expected").get<bool>());
    const std::string op = text_at(result, "op");
    if (op == "compute_slot_mapping") continue;
    const json::Value& fault = at(result, "fault");
    const bool under_dcp4 = *at(result, "world_size").get<std::int64_t>() == 4;
    const bool fixed = fault.get<std::string>() == nullptr;
    EXPECT_EQ(text_at(result, "status"), fixed || !under_dcp4 ? "pass" : "fail");
    ++count[op + (fixed ? " fixed" : " " + *fault.get<std::string>()) + (under_dcp4 ? " 4" : " 1")];
    if (op != "generate") continue;
    // Each token is sure: a margin of over 100 times what right kernels may do to it.
    for (const json::Value& step : *at(at(result, "tokens"), "steps").get<json::Array>()) {
      const auto* const margin = at(step, "margin").get<double>();
      if (fixed) {
        ASSERT_NE(margin, nullptr);
        EXPECT_GT(*margin, 100 * *at(step, "bound").get<double>()) << text_at(result, "name") << " " << text_at(step, "stage");
      }
    }
    // What is wrong is wrong where it began; what follows is tainted.
    for (const json::Value& violation : *at(result, "violations").get<json::Array>()) {
      if (text_at(violation, "buffer") != "tokens") {
        EXPECT_EQ(text_at(violation, "op"), "fused_norm_rope");
      }
    }
    if (under_dcp4 && !fixed && *fault.get<std::string>() != "cache_unguarded") {
      EXPECT_GT(*at(result, "tainted").get<std::int64_t>(), 0);
      EXPECT_NE(text_at(at(result, "tokens"), "digest"), text_at(at(result, "tokens_poison_b"), "digest"));
    }
  }
  EXPECT_EQ(count.size(), 16U);
  for (const auto& [kind, number] : count) EXPECT_EQ(number, kScenarios) << kind;

  // Fixed: every rank has DCP1's K rows, and the tokens are the same. Gated: none has, and they are not.
  EXPECT_EQ(at(report, "relations").get<json::Array>()->size(), 8U * kScenarios);
  for (const json::Value& relation : *at(report, "relations").get<json::Array>()) {
    const auto* fault = at(relation, "fault").get<std::string>();
    const bool gated = fault != nullptr && (*fault == "k_gated" || *fault == "q_gated");
    EXPECT_EQ(*at(relation, "equal").get<bool>(), !gated);
    EXPECT_EQ(*at(relation, "expected_equal").get<bool>(), !gated);
    EXPECT_EQ(at(relation, "dcp4").get<json::Array>()->size(), text_at(relation, "quantity") == "tokens" ? 1U : 4U);
  }

  // The table stays within 80 columns, and says where.
  EXPECT_THAT(ended.out, HasSubstr("kv_c_out and k_pe_out: unwritten on ranks 0-3, 384 of 512 token rows each"));
  EXPECT_THAT(ended.out, HasSubstr("mla_cache"));
}

TEST_F(Run, ReproWithAnotherKernelAloneIsHeldAgainstTheSameExpectations) {
  std::filesystem::create_directories(path("corpus"));
  std::string text = small_case();
  text.insert(text.find("\"case\""), R"("expect": {"k_gated": {"status": "pass"}}, )");
  file("corpus/small.json", text);
  const Ended ended = run({"repro", "--corpus", path("corpus"), "--backend", "host"});
  EXPECT_EQ(ended.code, 1) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("expected pass"));
}

}  // namespace
}  // namespace dcpcheck
