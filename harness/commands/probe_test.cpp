// dcpcheck kernels --probe, as a person runs it.
#include <gmock/gmock.h>

#include "harness/commands/document_test.hpp"
#include "harness/commands/program_test.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ProbeVerb : public Program {};

TEST_F(ProbeVerb, ProposesWhatTheExampleFollows) {
  const Ended ended = run({"kernels", "--probe", library("fused_eh_norm"), "--backend", "host", "--json", "-"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  const json::Value report = json::parse(ended.out, "report");
  EXPECT_EQ(at(report, "fits"), json::Value(true));
  EXPECT_EQ(json::dump(at(at(at(report, "proposal"), "contract"), "norm_round")), R"(["none","bf16"])");
  EXPECT_EQ(at(report, "proposal").find("requirements"), nullptr);
  EXPECT_THAT(ended.err, HasSubstr("Contract options, all others being as chosen:\n  norm_round: none and bf16\n"));
}

TEST_F(ProbeVerb, PresetsAreShownWithTheirOpAndWithWhatFollowsThem) {
  const Ended ops = run({"ops", "fused_norm_rope"});
  EXPECT_EQ(ops.code, 0) << ops.err;
  EXPECT_THAT(ops.out,
              HasSubstr("\nPresets (of options not named, the default):\n  vllm_in_place: k_outputs in_place, tile_scale"));
  const Ended kernels = run({"kernels", library("preset")});
  EXPECT_EQ(kernels.code, 0) << kernels.err;
  EXPECT_THAT(kernels.out, HasSubstr("    Preset vllm_in_place\n"));
  EXPECT_THAT(kernels.out, HasSubstr("    Contract option tile_scale: pow2\n"));
  EXPECT_THAT(kernels.out, HasSubstr("(one slot map for both caches)"));
  const json::Value list = json::parse(run({"kernels", library("preset"), "--json", "-"}).out, "list");
  EXPECT_EQ(at(at(list.get<json::Array>()->front(), "declared"), "preset"), json::Value("vllm_in_place"));
}

TEST_F(ProbeVerb, AKernelThatFitsNothingIsOne) {
  const Ended ended = run({"kernels", "--probe", library("eps_left_out"), "--backend", "host"});
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("No declaration fits: "));
  EXPECT_THAT(ended.out, HasSubstr("fail (inadmissible): out: wrong values"));
}

TEST_F(ProbeVerb, ACrashIsEvidence) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  ::setenv("PYTHONPATH", DCPCHECK_SOURCE_DIR "/harness/adapters/python", 1);
  ::setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
  const std::string script = file("crashes.py", R"(import os, sys
sys.path.insert(0, ")" DCPCHECK_SOURCE_DIR R"(/harness/adapters/examples/host")
import fused_eh_norm
from dcpcheck import serve

def run(launch):
    if launch.scalar("option.norm_round") == "bf16":
        os.abort()
    fused_eh_norm.run(launch)

serve("fused_eh_norm", run, source=__file__)
)");
  const Ended ended = run({"kernels", "--probe", "exec:python3 '" + script + "'", "--backend", "host", "--json", "-"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  const json::Value report = json::parse(ended.out, "report");
  const json::Value* const contract = at(report, "proposal").find("contract");
  EXPECT_TRUE(contract == nullptr || contract->find("norm_round") == nullptr) << "the default alone is followed";
  const json::Value& values = at(at(report, "options").get<json::Array>()->front(), "values");
  const json::Value& bf16 = values.get<json::Array>()->at(1);
  EXPECT_EQ(at(bf16, "value"), json::Value("bf16"));
  EXPECT_GT(*at(bf16, "failed").get<std::int64_t>(), 10);
  EXPECT_THAT(*at(at(bf16, "first_failure"), "why").get<std::string>(), HasSubstr("crash (process-ended): "));
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
