// --kernel lib:FILE: kernels from shared libraries, as a person runs them.
#include <gmock/gmock.h>

#include "harness/commands/document_test.hpp"
#include "harness/commands/program_test.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Library : public Program {
 protected:
  std::string eh_norm(const std::string& contract = "") const {
    return file("eh-norm.json", R"({"schema": "dcpcheck.case/1", "name": "eh-norm", "source": "a test", "case": {
"op": "fused_eh_norm", "seed": "0000000000000001", "geometry": {"batch": [{"uncached": 5}], "tp": 2},
"params": {"hidden_size": 64, "embeds_eps": 0.5, "hidden_eps": 0.25}, "contract": {)" +
                                    contract + "}}}");
  }
  // A pipeline under DCP2, with two tokens put out.
  std::string pipeline() const {
    return file("pipeline.json", R"({"schema": "dcpcheck.case/1", "name": "pipeline", "source": "a test", "case": {
"op": "generate", "seed": "0000000000000001", "geometry": {"batch": [{"uncached": 5}], "tp": 2, "dcp": {"world_size": 2},
"caches": {"mla": {"block_size": 4}}}, "params": {"tokens": 2}}})");
  }
};

const json::Value& only_result(const json::Value& report) {
  const auto& results = *at(report, "results").get<json::Array>();
  EXPECT_EQ(results.size(), 1U);
  return results.front();
}

TEST_F(Library, TheExamplePassesAndTheReplayLineCarriesIt) {
  const std::string spec = library("fused_eh_norm");
  const std::string small = eh_norm();
  const Ended ended = run({"run", "--backend", "host", "--kernel", spec, small});
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.err, IsEmpty());
  EXPECT_THAT(ended.out, HasSubstr("fused_eh_norm"));
  EXPECT_TRUE(ended.out.ends_with(" run --backend host --kernel " + spec + " --seed 0000000000000001 " + small + "\n"));
}

TEST_F(Library, TheReportSaysWhichContractOptionsWereInForce) {
  const Ended ended = run(
      {"run", "--backend", "host", "--kernel", library("fused_eh_norm"), "--json", "-", eh_norm(R"("norm_round": "bf16")")});
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  const json::Value report = parsed(ended.out);
  EXPECT_EQ(text_at(at(only_result(report), "contract"), "norm_round"), "bf16");
  EXPECT_EQ(text_at(at(only_result(report), "contract"), "division"), "rn");
}

TEST_F(Library, AFaultIsCaught) {
  const Ended ended = run({"run", "--backend", "host", "--kernel", library("eps_left_out"), eh_norm()});
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("fused_eh_norm eps_left_out.so, host: fail (inadmissible)"));
  EXPECT_THAT(ended.out, HasSubstr("out: wrong values on ranks 0-1, 5 of 5 token rows each"));
  EXPECT_THAT(ended.out, HasSubstr("Contract options: division rn and norm_round none"));
}

TEST_F(Library, ACaseThatItIsNotForIsSkippedAndSeventySeven) {
  const Ended ended = run({"run", "--backend", "host", "--kernel", library("fused_eh_norm"), eh_norm(R"("division": "full")")});
  EXPECT_EQ(ended.code, 77) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("it follows the contract option division as rn, and the case has full"));
  const Ended of_cuda = run({"run", "--backend", "host", "--kernel", library("cuda_alone"), eh_norm()});
  EXPECT_EQ(of_cuda.code, 77) << of_cuda.out << of_cuda.err;
}

TEST_F(Library, AChangedFloatingPointModeIsOne) {
  const Ended ended = run({"run", "--backend", "host", "--kernel", library("rounds_upward"), "--json", "-", eh_norm()});
  EXPECT_EQ(ended.code, 1) << ended.err;
  const json::Value report = parsed(ended.out);
  EXPECT_EQ(text_at(only_result(report), "reason"), "floating-point-mode");
  EXPECT_THAT(text_at(only_result(report), "detail"), HasSubstr("rounding is"));
}

TEST_F(Library, ADefectIsTwoAndOneSentence) {
  const std::string spec = library("unknown_option");
  const Ended ended = run({"run", "--backend", "host", "--kernel", spec, eh_norm()});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err, "dcpcheck: " + spec +
                           ": it follows the contract option 'norm_raund', which fused_eh_norm does not have: did you mean "
                           "norm_round?\n");
  EXPECT_THAT(ended.out, IsEmpty());
}

TEST_F(Library, AnOpBeforeItMustBeItsOwn) {
  const std::string spec = library("fused_eh_norm");
  EXPECT_EQ(run({"run", "--backend", "host", "--kernel", "fused_eh_norm=" + spec, eh_norm()}).code, 0);
  const Ended other = run({"run", "--backend", "host", "--kernel", "fused_q=" + spec, eh_norm()});
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(other.err, "dcpcheck: --kernel fused_q=" + spec + ": that kernel is one of fused_eh_norm\n");
}

// Of two files, and of a path with a "=" in it.
TEST_F(Library, SeveralMayBeNamed) {
  const std::string copy = path("a=b.so");
  std::filesystem::copy_file(DCPCHECK_LIBRARIES "/fused_eh_norm.so", copy);
  const Ended ended = run({"run", "--backend", "host", "--kernel", "lib:" + copy, "--kernel", library("eps_left_out"),
                           "--kernel", "builtin:fused_eh_norm", "--kernel", "lib:" + copy, eh_norm()});
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("3 results: 2 pass, 1 fail"));
}

TEST_F(Library, TakesItsOpsPlaceInAPipeline) {
  const std::string spec = library("merge_ranks");
  const Ended ended = run({"run", "--backend", "host", "--kernel", "merge_ranks=" + spec, "--json", "-", pipeline()});
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  const json::Value report = parsed(ended.out);
  EXPECT_EQ(text_at(only_result(report), "op"), "generate");
  EXPECT_EQ(text_at(only_result(report), "kernel"), spec);
  // One that the pipeline does not have.
  EXPECT_EQ(run({"run", "--backend", "host", "--kernel", library("fused_eh_norm"), pipeline()}).code, 77);
}

TEST_F(Library, KernelsShowsWhatItDeclares) {
  const std::string spec = library("fused_eh_norm");
  const Ended ended = run({"kernels", spec});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, spec +
                           "\n"
                           "    fused_eh_norm example: fused_eh_norm, host\n"
                           "    One thread, a row after the other.\n"
                           "    Contract option norm_round: none and bf16\n"
                           "    Contract option division: rn\n");
  EXPECT_EQ(run({"kernels", "--kernel", spec}).out, ended.out);
  EXPECT_THAT(run({"kernels", library("requires_widths")}).out,
              HasSubstr("    Contract option norm_round: none, the default\n    Contract option division: rn\n"
                        "    Requires hidden_size % 8 == 0 (rows of a multiple of 8)\n"));
  EXPECT_THAT(run({"kernels", library("few_tensors")}).out, HasSubstr("    Tensors: out\n"));
  const json::Value list = parsed(run({"kernels", spec, "--json", "-"}).out);
  const json::Value& declared = at(list.get<json::Array>()->front(), "declared");
  EXPECT_EQ(json::dump(at(declared, "options")), R"({"division":["rn"],"norm_round":["none","bf16"]})");
  // A kernel of ours alone, where it is named.
  const Ended ours = run({"kernels", "@k_gated"});
  EXPECT_THAT(ours.out, HasSubstr("builtin:fused_norm_rope@k_gated"));
  EXPECT_THAT(ours.out, Not(HasSubstr("q_gated")));
}

}  // namespace
}  // namespace dcpcheck
