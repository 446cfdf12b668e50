// Kernels in processes: what starting one refuses, and what comes of whatever a process does in a launch.
#include "harness/adapters/process.hpp"

#include <gmock/gmock.h>
#include <sys/types.h>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "harness/core/error.hpp"
#include "harness/core/parallel.hpp"
#include "properties/law.hpp"
#include "properties/test_bench.hpp"

namespace dcpcheck {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

const std::string kFolder = DCPCHECK_SOURCE_DIR "/harness/adapters/";
// By `exec`, so that the shell makes place for it: how it ended is then told without a shell between.
const std::string kPython = "exec env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH='" + kFolder + "python' python3 ";
const std::string kExample = kPython + "'" + kFolder + "examples/host/fused_eh_norm.py'";

std::string script(const std::string& words) { return kPython + "'" + kFolder + "process_test'/" + words; }

class ProcessTest : public testing::Test {
 protected:
  const Op& op() const { return bench_.ops.at("fused_eh_norm"); }
  Kernel load(const std::string& command, const ProcessOptions& options = {}) const {
    return load_process("exec:" + command, bench_.ops, options);
  }
  Kernel misbehaving(const std::string& how) const {
    ProcessOptions options;
    options.launch = how.starts_with("hangs") ? milliseconds(700) : milliseconds(120'000);
    return load(script("misbehaves.py " + how), options);
  }

  // What the refusal of a command says after the command.
  std::string refusal(const std::string& command, const ProcessOptions& options = {}) const {
    const std::string spec = "exec:" + command;
    try {
      static_cast<void>(load_process(spec, bench_.ops, options));
    } catch (const InputError& error) {
      const std::string sentence = error.what();
      EXPECT_THAT(sentence, StartsWith(spec + ": "));
      return sentence.substr(std::min(sentence.size(), spec.size() + 2));
    }
    return "started";
  }
  // … of a process whose ready line is a right one with `members` in the place of its own.
  std::string refusal_of_ready(const json::Object& members) const {
    json::Object line{{"dcpcheck", 1},
                      {"op", "fused_eh_norm"},
                      {"name", "of a test"},
                      {"devices", json::Array{"host"}},
                      {"source", "/a/file"}};
    for (const json::Member& member : members) {
      const auto same = [&](const json::Member& other) { return other.first == member.first; };
      std::erase_if(line, same);
      if (member.second != json::Value()) line.push_back(member);
    }
    return refusal("echo '" + json::dump(line) + "'");
  }

  // A case of rows of `width` elements.
  Case rows_of(int width) const {
    return case_from_json(
        bench_.ops,
        json::parse(R"({"op": "fused_eh_norm", "seed": "0000000000000007", "geometry": {"batch": [{"uncached": 3},
{"cached": 2, "uncached": 4}], "padding": {"tokens": 2}, "tp": 2}, "params": {"hidden_size": )" +
                        std::to_string(width) + R"(, "embeds_eps": 0.5}})",
                    "case"),
        "case");
  }

  Verdict verdict(const Kernel& kernel, const Case& value) const {
    ReferenceMemory memory;
    Prepared prepared = prepare(op(), bench_.references.at("fused_eh_norm"), value, TestBench::kMemory, 1);
    return judge(bench_.bench, prepared, kernel, {}, memory).verdict;
  }
  Verdict verdict(const Kernel& kernel, int width) const { return verdict(kernel, rows_of(width)); }

  // The verdict on one that does `how` for rows of 9 elements; cases before and after it are as they should be.
  Verdict among_others(const std::string& how) const {
    const Kernel kernel = misbehaving(how);
    EXPECT_EQ(verdict(kernel, 8).status, Status::pass) << how;
    Verdict found = verdict(kernel, 9);
    const Verdict after = verdict(kernel, 8);
    EXPECT_EQ(after.status, Status::pass) << how << ": " << after.detail;
    EXPECT_GT(after.compared, 0) << how;
    return found;
  }

  const TestBench bench_;
};

TEST_F(ProcessTest, WhatDoesNotStartIsASentence) {
  EXPECT_THAT(refusal("no_such_command"), MatchesRegex("its process ended before its ready line: exit code 127; its stderr "
                                                       "ends: .*no_such_command.*not found"));
  EXPECT_EQ(refusal("echo 'no licence' >&2; exit 3"),
            "its process ended before its ready line: exit code 3; its stderr ends: no licence");
  EXPECT_EQ(refusal("exit 0"), "its process ended before its ready line: exit code 0");
  EXPECT_EQ(refusal("kill -KILL $$"), "its process ended before its ready line: signal 9 (Killed)");
  EXPECT_EQ(refusal("(sh -c 'kill -KILL $$'; exit $?) 2>&-; exit $?"),
            "its process ended before its ready line: exit code 137, as after signal 9 (Killed)");
  EXPECT_EQ(refusal("printf '{\"dcpcheck\"'; exit 1"),
            "its process ended before its ready line: exit code 1, after a part of a line: {\"dcpcheck\"");
  EXPECT_THAT(refusal("echo a warning >&2; echo loading; sleep 1000"),
              AllOf(StartsWith("its ready line: not valid JSON near byte 1"), HasSubstr("; its stderr ends: a warning")));
  EXPECT_EQ(refusal("exec sleep 1000 >&-"), "its process closed its stdout before its ready line");
  EXPECT_EQ(refusal("yes | tr -d '\\n'"), "its process wrote a line of more than 1048576 bytes where its ready line was due");
  ProcessOptions soon;
  soon.start = milliseconds(300);
  EXPECT_EQ(refusal("echo compiling >&2; sleep 1000", soon),
            "its process did not come to its ready line within 0.300 s; its stderr ends: compiling");
  for (const std::string spec : {"exec:", "exec:  "}) {
    try {
      static_cast<void>(load_process(spec, bench_.ops));
      FAIL() << spec;
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()), "--kernel " + spec + " names no command");
    }
  }
}

TEST_F(ProcessTest, AReadyLineThatIsWrongIsASentence) {
  EXPECT_EQ(refusal_of_ready({{"dcpcheck", 2}}), "it speaks version 2 of the protocol, and this dcpcheck speaks 1");
  EXPECT_EQ(refusal_of_ready({{"dcpcheck", "new"}, {"more", 1}}),
            "it speaks version \"new\" of the protocol, and this dcpcheck speaks 1");
  EXPECT_THAT(refusal_of_ready({{"dcpcheck", nullptr}}), HasSubstr("dcpcheck"));
  EXPECT_EQ(refusal_of_ready({{"op", "fused_eh_nrom"}}),
            "it is a kernel of the op 'fused_eh_nrom', which there is not: did you mean fused_eh_norm?");
  EXPECT_EQ(refusal_of_ready({{"op", "generate"}}),
            "it is a kernel of generate, which is a pipeline: a kernel is of one of its ops");
  EXPECT_EQ(refusal_of_ready({{"options", json::Object{{"norm_raund", json::Array{"bf16"}}}}}),
            "it follows the contract option 'norm_raund', which fused_eh_norm does not have: did you mean norm_round?");
  EXPECT_EQ(refusal_of_ready({{"options", json::Object{{"norm_round", json::Array{"fp16"}}}}}),
            "it follows the contract option norm_round as 'fp16', which is none of none or bf16");
  EXPECT_EQ(refusal_of_ready({{"options", json::Object{{"norm_round", json::Array{}}}}}),
            "its ready line: /options/norm_round is an array, but an option that it follows has one value or more");
  EXPECT_EQ(refusal_of_ready({{"preset", "vllm_packed"}}),
            "it follows the preset 'vllm_packed', which fused_eh_norm does not have: it has no presets");
  EXPECT_THAT(refusal_of_ready({{"op", "fused_norm_rope"}, {"preset", "vllm"}}),
              HasSubstr("it follows the preset 'vllm', which fused_norm_rope does not have: it has vllm_in_place, "));
  EXPECT_THAT(refusal_of_ready({{"preset", 3}}), HasSubstr("its ready line: /preset is 3"));
  EXPECT_EQ(refusal_of_ready({{"op", "fused_norm_rope"}, {"preset", "vllm_packed"}}), "started");
  EXPECT_EQ(refusal_of_ready({{"tensors", json::Array{"outt"}}}),
            "it knows the tensor 'outt', which fused_eh_norm does not have: did you mean out?");
  EXPECT_EQ(refusal_of_ready({{"requirements", json::Array{json::Object{{"that", "hidden_sise % 8 == 0"}}}}}),
            "its requirement \"hidden_sise % 8 == 0\" names 'hidden_sise', which fused_eh_norm does not have: did you mean "
            "hidden_size?");
  EXPECT_THAT(refusal_of_ready({{"requirements", json::Array{json::Object{{"that", "hidden_size %"}}}}}),
              StartsWith("a requirement of it is none: expression \"hidden_size %\", column 14"));
  EXPECT_THAT(refusal_of_ready({{"devices", json::Array{}}}), HasSubstr("but it runs on host, cuda or both"));
  EXPECT_THAT(refusal_of_ready({{"devices", json::Array{"gpu"}}}), HasSubstr("/devices/0 is \"gpu\""));
  EXPECT_THAT(refusal_of_ready({{"source", nullptr}}), HasSubstr("source"));
  EXPECT_THAT(refusal_of_ready({{"name", ""}}), HasSubstr("it is a text that is not empty"));
  EXPECT_THAT(refusal_of_ready({{"optoins", 1}}), HasSubstr("optoins"));
  EXPECT_THAT(refusal("echo 3"), HasSubstr("its ready line"));
  EXPECT_EQ(refusal_of_ready({}), "started");  // else each of these would say nothing
}

TEST_F(ProcessTest, WhatItDeclaresIsReadWhole) {
  const Kernel kernel = load(script("prints.py"));
  EXPECT_EQ(kernel.name, "exec:" + script("prints.py"));
  EXPECT_EQ(kernel.op, "fused_eh_norm");
  EXPECT_TRUE(kernel.host);
  EXPECT_FALSE(kernel.cuda);
  ASSERT_TRUE(kernel.declared);
  EXPECT_EQ(kernel.declared->name, "prints");
  EXPECT_EQ(kernel.declared->options, (std::map<std::string, std::vector<std::string>>{{"division", {"rn"}}}));
  ASSERT_TRUE(kernel.declared->tensors);
  EXPECT_EQ(kernel.declared->tensors->size(), 6U);
  ASSERT_EQ(kernel.declared->requirements.size(), 2U);
  EXPECT_EQ(kernel.declared->requirements[1].that.text(), "hidden_size < 100");
  EXPECT_EQ(kernel.declared->requirements[1].say, "short rows");
  EXPECT_EQ(std::filesystem::path(kernel.declared->source).filename(), "prints.py");
  EXPECT_EQ(verdict(kernel, 100).detail, "rank 0: it requires short rows");
}

TEST_F(ProcessTest, ACrashIsAVerdict) {
  const auto crash = [&](const std::string& how) {
    const Verdict found = among_others(how);
    EXPECT_EQ(found.status, Status::crash) << how;
    EXPECT_EQ(found.reason, Reason::process_ended) << how;
    return found.detail;
  };
  const std::string ended = "rank 0: its process ended before an answer: ";
  EXPECT_EQ(crash("segfaults"), ended + "signal 11 (Segmentation fault); its stderr ends: two | three | four");
  EXPECT_EQ(crash("exits"), ended + "exit code 3; its stderr ends: out of tiles");
  EXPECT_EQ(crash("leaves"), ended + "exit code 0");
  EXPECT_THAT(crash("throws"),
              AllOf(StartsWith(ended + "exit code 1; its stderr ends: "), HasSubstr("ValueError: no such tile")));
  EXPECT_EQ(crash("half_an_answer"), ended + "exit code 0, after a part of a line: {\"launch\": 0, \"o");
  // What its answer left is not judged: the launch after it has nobody to make it.
  EXPECT_EQ(crash("dies_after_its_answer"), ended + "exit code 5");
}

TEST_F(ProcessTest, AHangIsAVerdict) {
  const auto hang = [&](const std::string& how) {
    const Verdict found = among_others(how);
    EXPECT_EQ(found.status, Status::hang) << how;
    EXPECT_EQ(found.reason, Reason::timed_out) << how;
    return found.detail;
  };
  const std::string late = "rank 0: its process did not come to an answer within 0.700 s";
  EXPECT_EQ(hang("hangs"), late + "; its stderr ends: waiting for a lock");
  EXPECT_EQ(hang("hangs_in_its_answer"), late + ", after a part of a line: {\"launch\": ");
}

TEST_F(ProcessTest, WhatIsNoAnswerIsAVerdict) {
  const auto bad = [&](const std::string& how) {
    const Verdict found = among_others(how);
    EXPECT_EQ(found.status, Status::fail) << how;
    EXPECT_EQ(found.reason, Reason::bad_answer) << how;
    EXPECT_THAT(found.detail, StartsWith("rank 0: its process ")) << how;
    return found.detail;
  };
  EXPECT_THAT(bad("garbage"), StartsWith("rank 0: its process wrote what is no answer: Traceback?? no (its answer: not valid"));
  EXPECT_THAT(bad("wakes_up_late"), MatchesRegex(".*\\(it is to launch [0-9]+, and launch [0-9]+ was asked for\\)"));
  EXPECT_THAT(bad("no_end_of_line"), HasSubstr("wrote a line of more than 1048576 bytes where an answer was due"));
  EXPECT_THAT(bad("long_line"), AllOf(HasSubstr("xxx..."), HasSubstr("65536")));
  EXPECT_THAT(bad("closes_stdout"), HasSubstr("closed its stdout before an answer"));
  EXPECT_THAT(bad("answers_twice"), HasSubstr("went on after its answer: {\"launch\""));
  EXPECT_THAT(bad("says_two_things"), HasSubstr("has not one of ok, skip and refused beside the launch"));
  EXPECT_THAT(bad("says_nothing"), HasSubstr("has not one of ok, skip and refused beside the launch"));
  EXPECT_THAT(bad("is_not_ok"), HasSubstr("a launch that is not ok is skipped or refused"));
  EXPECT_THAT(bad("deep"), HasSubstr("[[[["));
  EXPECT_THAT(bad("a_list"), HasSubstr("[1, 2]"));
  EXPECT_THAT(bad("unmapped"), HasSubstr("the launch's memory is the shared one"));
}

// Which launch it is heard in is a matter of time; that it is heard is not, where another launch comes.
TEST_F(ProcessTest, WhatIsSaidBetweenLaunchesIsAVerdict) {
  const Kernel kernel = misbehaving("talks_after_its_answer");
  Verdict found = verdict(kernel, 9);
  if (found.status == Status::pass) {
    std::this_thread::sleep_for(milliseconds(500));
    found = verdict(kernel, 8);
  }
  EXPECT_EQ(found.reason, Reason::bad_answer);
  EXPECT_THAT(found.detail, HasSubstr(": done"));
  EXPECT_EQ(verdict(kernel, 8).status, Status::pass);
}

TEST_F(ProcessTest, OneThatReadsNoMoreEndsAtTheNextLaunch) {
  ProcessOptions options;
  options.launch = milliseconds(1500);
  const Verdict found = verdict(load(script("misbehaves.py reads_no_more"), options), 9);
  EXPECT_EQ(found.status, Status::hang);
  EXPECT_EQ(found.detail, "rank 0: its process did not come to an answer within 1.500 s");
}

TEST_F(ProcessTest, AFloodOfStderrIsHarmless) { EXPECT_EQ(among_others("floods_stderr").status, Status::pass); }

TEST_F(ProcessTest, SkipsAndRefusalsAreAsInALibrary) {
  const Verdict skipped = among_others("skips");
  EXPECT_EQ(skipped.status, Status::skipped);
  EXPECT_EQ(skipped.detail, "rank 0: not on a Monday?");
  const Verdict refused = among_others("refuses");
  EXPECT_EQ(refused.reason, Reason::launch_refused);
  EXPECT_EQ(refused.detail, "rank 0: no such grid");
  EXPECT_EQ(among_others("refuses_without_a_word").detail, "rank 0: it gave no reason");
}

TEST_F(ProcessTest, WhatItLeavesIsJudged) {
  const auto reason = [&](const std::string& how) {
    const Verdict found = among_others(how);
    EXPECT_EQ(found.status, Status::fail) << how;
    return found.reason;
  };
  EXPECT_EQ(reason("writes_nothing"), Reason::unwritten);
  EXPECT_EQ(reason("writes_past_an_output"), Reason::guard);
  // Its second run is on what the first one left.
  const std::vector<Violation> changed = among_others("changes_an_input").violations;
  EXPECT_TRUE(std::any_of(changed.begin(), changed.end(), [](const Violation& violation) {
    return violation.reason == Reason::input_changed && violation.buffer == "hidden_weight";
  }));
  EXPECT_THAT(reason("reads_past_an_input"), testing::AnyOf(Reason::uninitialised_read, Reason::inadmissible));
  EXPECT_EQ(reason("leaves_poison_of_its_own"), Reason::unwritten);
  EXPECT_EQ(among_others("shrinks_the_memory").status, Status::pass);
  const Verdict past = among_others("writes_past_an_input");
  EXPECT_EQ(past.reason, Reason::guard);
  EXPECT_EQ(past.detail, "rank 0: it wrote 2 bytes next to the input embeds_weight, the first 1 bytes past its end");
  const Verdict before = among_others("writes_before_an_input");
  EXPECT_EQ(before.reason, Reason::guard);
  EXPECT_EQ(before.detail, "rank 0: it wrote 1 bytes next to the input positions, the first 8 bytes before its start");
  const Verdict eps = verdict(load(script("eps_left_out.py")), 64);
  EXPECT_EQ(eps.reason, Reason::inadmissible);
}

TEST_F(ProcessTest, TheClientKeepsStdoutForAnswers) {
  const Kernel kernel = load(script("prints.py"));
  const Verdict skipped = verdict(kernel, 1);
  EXPECT_EQ(skipped.status, Status::skipped);
  EXPECT_EQ(skipped.detail, "rank 0: rows of 1");
  const Verdict raised = verdict(kernel, 2);
  EXPECT_EQ(raised.reason, Reason::launch_refused);
  EXPECT_THAT(raised.detail, StartsWith("rank 0: ValueError: rows of 2?and more (prints.py:"));
  EXPECT_THAT(verdict(kernel, 3).detail,
              StartsWith("rank 0: its process ended before an answer: exit code 4; its stderr ends: "));
  EXPECT_THAT(verdict(kernel, 4).detail, StartsWith("rank 0: KeyError: 'nothing'"));
  EXPECT_EQ(verdict(kernel, 6).reason, Reason::unwritten);
}

TEST_F(ProcessTest, AFailedLaunchIsWhatTheLawOfWritingReports) {
  const Law* write_set = nullptr;
  const std::vector<Law>& laws = all_laws();
  for (const Law& law : laws)
    if (law.name == "write_set") write_set = &law;
  ASSERT_NE(write_set, nullptr);
  for (const std::string how : {"segfaults", "garbage", "writes_past_an_input"}) {
    const Kernel kernel = misbehaving(how);
    Trial trial(bench_.bench, op(), kernel, rows_of(9));
    const Verdict found = verdict_of(*write_set, apply(*write_set, trial));
    EXPECT_EQ(found.status, Status::fail) << how;
    EXPECT_THAT(found.detail, HasSubstr("rank 0: it")) << how;
  }
}

TEST_F(ProcessTest, WhatDoesNotStartAgainIsAVerdict) {
  const std::string mark = testing::TempDir() + "/started_once";
  std::filesystem::remove_all(mark);
  const Kernel kernel = load("mkdir '" + mark + "' || exit 4; " + script("misbehaves.py leaves"));
  EXPECT_EQ(verdict(kernel, 9).status, Status::crash);
  for (int again = 0; again < 2; ++again) {
    const Verdict found = verdict(kernel, 8);
    EXPECT_EQ(found.status, Status::crash);
    EXPECT_THAT(found.detail, AllOf(StartsWith("rank 0: a further process of it does not start: "),
                                    HasSubstr("its process ended before its ready line: exit code 4")));
  }
  std::filesystem::remove_all(mark);
}

TEST_F(ProcessTest, WhatDeclaresSomethingElseTheSecondTimeIsAVerdict) {
  const std::string mark = testing::TempDir() + "/declared_once";
  std::filesystem::remove_all(mark);
  const Kernel kernel = load("if mkdir '" + mark + "'; then " + script("misbehaves.py leaves") + "; else " +
                             script("misbehaves.py exits") + "; fi");
  EXPECT_EQ(verdict(kernel, 9).status, Status::crash);
  EXPECT_THAT(verdict(kernel, 8).detail, HasSubstr("it declares something else than before"));
  std::filesystem::remove_all(mark);
}

TEST_F(ProcessTest, ASignalToDcpcheckEndsTheWait) {
  std::atomic<int> interrupted{0};
  ProcessOptions options;
  options.interrupted = &interrupted;
  const Kernel kernel = load(script("misbehaves.py hangs"), options);
  const auto start = std::chrono::steady_clock::now();
  std::jthread later([&] {
    std::this_thread::sleep_for(milliseconds(200));
    interrupted = SIGTERM;
  });
  EXPECT_THROW(static_cast<void>(verdict(kernel, 9)), Interrupted);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

// In "/proc", and no zombie that its new parent has not waited for.
bool runs(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return false;
  return line.substr(line.rfind(')') + 2, 1) != "Z";
}

TEST_F(ProcessTest, WhatItStartedEndsWithTheKernel) {
  const std::string file = testing::TempDir() + "/pid_of_another";
  pid_t other = 0;
  {
    const Kernel kernel = load("sleep 1000 & echo $! > '" + file + "'; " + kExample);
    std::ifstream(file) >> other;
    ASSERT_GT(other, 1);
    EXPECT_TRUE(runs(other));
    EXPECT_EQ(verdict(kernel, 8).status, Status::pass);
  }
  for (int i = 0; i < 1000 && runs(other); ++i) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_FALSE(runs(other));
  std::filesystem::remove(file);
}

TEST_F(ProcessTest, TimeLimitsComeFromTheEnvironment) {
  const auto with = [](const char* start, const char* launch) {
    EXPECT_EQ(::setenv("DCPCHECK_START_SECONDS", start, 1), 0);
    EXPECT_EQ(::setenv("DCPCHECK_LAUNCH_SECONDS", launch, 1), 0);
    const auto clear = [] {
      EXPECT_EQ(::unsetenv("DCPCHECK_START_SECONDS"), 0);
      EXPECT_EQ(::unsetenv("DCPCHECK_LAUNCH_SECONDS"), 0);
    };
    try {
      const ProcessOptions options = process_options_from_environment();
      clear();
      return std::to_string(options.start.count()) + " " + std::to_string(options.launch.count());
    } catch (const InputError& error) {
      clear();
      return std::string(error.what());
    }
  };
  EXPECT_EQ(with("", ""), "300000 60000");
  EXPECT_EQ(with("900", "0.25"), "900000 250");
  for (const char* wrong : {"0", "-1", "soon", "1s", "nan", "inf", "1e9"})
    EXPECT_EQ(with("1", wrong),
              "DCPCHECK_LAUNCH_SECONDS is '" + std::string(wrong) + "', but it is a number of seconds from 0.001 to 1000000");
}

TEST_F(ProcessTest, ASparseCacheIsSkipped) {
  const Kernel kernel = load(
      R"(echo '{"dcpcheck": 1, "op": "fused_norm_rope", "name": "n", "devices": ["host"], "source": "s"}'; exec cat > /dev/null)");
  const Op& norm = bench_.ops.at("fused_norm_rope");
  const Case value = case_from_json(bench_.ops,
                                    json::parse(R"({"op": "fused_norm_rope", "seed": "0000000000000001",
"geometry": {"batch": [{"uncached": 2}], "caches": {"mla": {"sparse": true, "slot_mapping": "random"}}}})",
                                                "case"),
                                    "case");
  Prepared prepared = prepare(norm, bench_.references.at("fused_norm_rope"), value, TestBench::kMemory, 1);
  ReferenceMemory memory;
  const Verdict found = judge(bench_.bench, prepared, kernel, {}, memory).verdict;
  EXPECT_EQ(found.status, Status::skipped);
  EXPECT_EQ(found.detail, "rank 0: a kernel in a process of its own is not given sparse caches");
}

// Several at once, each with a process of its own; strided rows, padding and offsets among them.
TEST_F(ProcessTest, TheExamplePassesGeneratedCases) {
  const Kernel example = load(kExample);
  GenerateOptions options = bench_.generate_options(op());
  options.cost = 2'000;
  options.large_every = 0;
  options.check = [&](const Case& value) {
    const std::string why = why_not(*example.declared, make_plan(op(), value, TestBench::kMemory));
    if (!why.empty()) throw InputError(why);
  };
  const Generator generator(op(), options);
  const std::int64_t cases = kSanitized ? 50 : 200;
  std::atomic<std::int64_t> compared{0};
  parallel_parts(cases, 4, 25, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const Case value = generator(54907, static_cast<std::uint64_t>(index));
      const Verdict found = verdict(example, value);
      compared += found.compared;
      EXPECT_EQ(found.status, Status::pass) << name_of(found.reason) << " " << found.detail << "\n"
                                            << json::dump(case_to_json(op(), value));
      if (HasFailure()) return;
    }
  });
  EXPECT_GT(compared.load(), 10 * cases);
}

// By its handle, and through shared memory; small cases after large ones, so that it grows and is mapped anew.
TEST_F(ProcessTest, DeviceMemoryIsHandedOver) {
  std::string why;
  if (!cuda_available(&why)) GTEST_SKIP() << why;
  const std::unique_ptr<Backend> cuda = make_cuda_backend();
  for (const std::string kind : {"shared", "cuda_ipc"}) {
    const Kernel kernel = load(script("on_device.py " + kind));
    EXPECT_FALSE(kernel.host);
    for (const int width : {8, 16384, 9, 16384, 64}) {
      const Case value = rows_of(width);
      Prepared prepared = prepare(op(), bench_.references.at("fused_eh_norm"), value, TestBench::kMemory, 1);
      const Verdict found = run_case(prepared, kernel, *cuda, {}).verdict;
      if (found.detail.find("memory cannot be mapped") != std::string::npos) GTEST_SKIP() << found.detail;
      EXPECT_EQ(found.status, Status::pass) << kind << ": " << found.detail;
      EXPECT_GT(found.compared, 0);
    }
  }
}

}  // namespace
}  // namespace dcpcheck
