// dcpcheck kernels --probe, as a person runs it.
#include <gmock/gmock.h>

#include "harness/commands/program_test.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string library(const std::string& name) { return "lib:" DCPCHECK_LIBRARIES "/" + name + ".so"; }

class ProbeVerb : public Program {};

const json::Value& at(const json::Value& value, std::string_view key) {
  const json::Value* member = value.find(key);
  if (member == nullptr) throw std::runtime_error("no " + std::string(key));
  return *member;
}

TEST_F(ProbeVerb, ProposesWhatTheExampleFollows) {
  const Ended ended = run({"kernels", "--probe", library("fused_eh_norm"), "--backend", "host", "--json", "-"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  const json::Value report = json::parse(ended.out, "report");
  EXPECT_EQ(at(report, "fits"), json::Value(true));
  EXPECT_EQ(json::dump(at(at(at(report, "proposal"), "contract"), "norm_round")), R"(["none","bf16"])");
  EXPECT_EQ(at(report, "proposal").find("requirements"), nullptr);
  EXPECT_THAT(ended.err, HasSubstr("Contract options, all others being as chosen:\n  norm_round: none and bf16\n"));
}

TEST_F(ProbeVerb, AKernelThatFitsNothingIsOne) {
  const Ended ended = run({"kernels", "--probe", library("eps_left_out"), "--backend", "host"});
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("No declaration fits: "));
  EXPECT_THAT(ended.out, HasSubstr("fail (inadmissible): out: wrong values"));
}

TEST_F(ProbeVerb, ACrashIsEvidence) {
  ::setenv("PYTHONPATH", DCPCHECK_SOURCE_DIR "/harness/adapters/python", 1);
  ::setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
  // It crashes for rows of 9 elements alone, so a case of them is what does not fit.
  const std::string script = DCPCHECK_SOURCE_DIR "/harness/adapters/process_test/misbehaves.py";
  const Ended ended = run({"kernels", "--probe", "exec:python3 '" + script + "' segfaults", "--backend", "host"});
  EXPECT_TRUE(ended.code == 0 || ended.code == 1) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("norm_round: "));
}

TEST_F(ProbeVerb, WhatIsAllSkippedOrCannotRunIsSeventySeven) {
  EXPECT_EQ(run({"kernels", "--probe", library("skips"), "--backend", "host"}).code, 77);
  const Ended cuda = run({"kernels", "--probe", library("cuda_alone"), "--backend", "host"});
  EXPECT_EQ(cuda.code, 77);
  EXPECT_THAT(cuda.out, HasSubstr("cannot run on the host backend: nothing was probed"));
}

TEST_F(ProbeVerb, BadUsageIsTwoAndOneSentence) {
  const auto refused = [this](std::vector<std::string> words) {
    words.insert(words.begin(), "kernels");
    const Ended ended = run(words);
    EXPECT_EQ(ended.code, 2) << ended.out;
    EXPECT_THAT(ended.out, IsEmpty());
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    return ended.err;
  };
  EXPECT_THAT(refused({"--probe"}), HasSubstr("--probe takes one kernel, and 0 are named"));
  EXPECT_THAT(refused({"--probe", "fused_q", "fused_eh_norm"}), HasSubstr("and 2 are named"));
  EXPECT_THAT(refused({"--probe", "generate"}), HasSubstr("generate is a pipeline"));
  EXPECT_THAT(refused({"--backend", "host", "fused_q"}), HasSubstr("--backend goes with --probe"));
}

}  // namespace
}  // namespace dcpcheck
