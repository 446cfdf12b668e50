// Kernels from shared libraries: what loading refuses, and what comes of running them.
#include "harness/adapters/library.hpp"

#include <gmock/gmock.h>
#include <atomic>
#include <cfenv>
#include <fstream>
#include <thread>

#include "harness/adapters/floating_point_mode.hpp"
#include "harness/core/error.hpp"
#include "harness/core/parallel.hpp"
#include "properties/law.hpp"
#include "properties/test_bench.hpp"

namespace dcpcheck {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string spec_of(const std::string& name) { return "lib:" DCPCHECK_LIBRARIES "/" + name + ".so"; }

class LibraryTest : public testing::Test {
 protected:
  const Op& op() const { return bench_.ops.at("fused_eh_norm"); }
  Kernel load(const std::string& name) const { return load_library(spec_of(name), bench_.ops); }

  std::string refusal(const std::string& spec) const {
    try {
      static_cast<void>(load_library(spec, bench_.ops));
    } catch (const InputError& error) {
      return error.what();
    }
    return "loaded";
  }

  // A case of the op under `contract` and `params`, JSON members.
  Case small(const std::string& params = R"("hidden_size": 8)", const std::string& contract = "") const {
    return case_from_json(
        bench_.ops,
        json::parse(R"({"op": "fused_eh_norm", "seed": "0000000000000007", "geometry": {"batch": [{"uncached": 3},
{"cached": 2, "uncached": 4}], "padding": {"tokens": 2}, "tp": 2}, "params": {)" +
                        params + R"(}, "contract": {)" + contract + "}}",
                    "case"),
        "case");
  }

  Verdict verdict(const Kernel& kernel, const Case& value) const {
    ReferenceMemory memory;
    Prepared prepared = prepare(op(), bench_.references.at("fused_eh_norm"), value, TestBench::kMemory, 1);
    return judge(bench_.bench, prepared, kernel, {}, memory).verdict;
  }
  Verdict verdict(const std::string& name) const { return verdict(load(name), small()); }

  const TestBench bench_;
};

TEST_F(LibraryTest, ADefectIsASentenceThatNamesTheFile) {
  const std::map<std::string, std::string> sentences{
      {"wrong_version", "it was built for version 999 of dcpcheck_kernel.h, and this dcpcheck has version 1"},
      {"no_run", "it has no function dcpcheck_run()"},
      {"no_kernel", "it has no function dcpcheck_describe()"},
      {"null_description", "dcpcheck_describe() returned a null pointer"},
      {"no_name", "in what dcpcheck_describe() returns, the kernel's name is missing"},
      {"no_devices", "it says that it runs on 0, which is neither DCPCHECK_HOST nor DCPCHECK_CUDA"},
      {"unknown_op", "it is a kernel of the op 'fused_eh_nrom', which there is not: did you mean fused_eh_norm?"},
      {"pipeline", "it is a kernel of generate, which is a pipeline: a kernel is of one of its ops"},
      {"unknown_option",
       "it follows the contract option 'norm_raund', which fused_eh_norm does not have: did you mean norm_round?"},
      {"unknown_value", "it follows the contract option norm_round as 'fp16', which is none of none or bf16"},
      {"null_value", "in what dcpcheck_describe() returns, a contract option's value is missing"},
      {"null_options", "in what dcpcheck_describe() returns there are 1 contract options, at no address"},
      {"countless_options", "in what dcpcheck_describe() returns there are 5000 contract options, which is more than 4096"},
      {"unknown_tensor", "it knows the tensor 'outt', which fused_eh_norm does not have: did you mean out?"},
      {"unknown_param",
       "its requirement \"hidden_sise % 8 == 0\" names 'hidden_sise', which fused_eh_norm does not have: did you mean "
       "hidden_size?"},
      {"param_that_is_no_term", "its requirement \"embeds_eps > 0\" names 'embeds_eps', which is no whole number or choice"},
      {"broken_requirement",
       "a requirement of it is none: expression \"hidden_size %\", column 14: expected a number, a name or a 'string'"},
      {"unknown_preset",
       "it follows the preset 'vllm_inplace', which fused_norm_rope does not have: it has vllm_in_place, vllm_packed, "
       "vllm_54908 "
       "or vllm_49435"},
      {"two_presets", "it follows two presets, 'vllm_in_place' and 'vllm_packed'"},
      {"preset_of_none", "it follows the preset 'vllm_in_place', which fused_eh_norm does not have: it has no presets"},
      {"missing_symbol", "it cannot be loaded: undefined symbol: defined_nowhere"},
      {"not_there", "it cannot be loaded: cannot open shared object file: No such file or directory"}};
  for (const auto& [name, sentence] : sentences) EXPECT_EQ(refusal(spec_of(name)), spec_of(name) + ": " + sentence);
  EXPECT_EQ(refusal("lib:"), "--kernel lib: names no file");
}

TEST_F(LibraryTest, AFileThatIsNoLibraryIsRefused) {
  const std::string path = testing::TempDir() + "/no_library.so";
  std::ofstream(path) << std::string(4096, 'x');
  EXPECT_EQ(refusal("lib:" + path), "lib:" + path + ": it cannot be loaded: invalid ELF header");
  EXPECT_THAT(refusal(std::string("lib:") + DCPCHECK_LIBRARIES), HasSubstr("it cannot be loaded: "));
  // The first half of a good one.
  std::ifstream whole(spec_of("fused_eh_norm").substr(4), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(whole)), std::istreambuf_iterator<char>());
  ASSERT_GT(bytes.size(), 4096U);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes.substr(0, 40);
  EXPECT_THAT(refusal("lib:" + path), StartsWith("lib:" + path + ": it cannot be loaded: "));
  static_cast<void>(std::remove(path.c_str()));
}

TEST_F(LibraryTest, WhatItDeclaresIsReadWhole) {
  const Kernel kernel = load("fused_eh_norm");
  EXPECT_EQ(kernel.name, spec_of("fused_eh_norm"));
  EXPECT_EQ(kernel.op, "fused_eh_norm");
  EXPECT_TRUE(kernel.host);
  EXPECT_FALSE(kernel.cuda);
  ASSERT_TRUE(kernel.declared);
  EXPECT_EQ(kernel.declared->name, "fused_eh_norm example");
  EXPECT_EQ(kernel.declared->options,
            (std::map<std::string, std::vector<std::string>>{{"division", {"rn"}}, {"norm_round", {"none", "bf16"}}}));
  EXPECT_FALSE(kernel.declared->tensors);
  EXPECT_TRUE(load("cuda_alone").cuda);
  EXPECT_FALSE(load("cuda_alone").host);
  EXPECT_EQ(load("few_tensors").declared->tensors, std::vector<std::string>{"out"});
  EXPECT_EQ(load("requires_widths").declared->requirements.front().that.text(), "hidden_size % 8 == 0");
}

TEST_F(LibraryTest, APresetIsFollowedButForWhatIsSaidBesides) {
  const Kernel kernel = load("preset");
  EXPECT_EQ(kernel.declared->preset, "vllm_in_place");
  EXPECT_EQ(kernel.declared->options,
            (std::map<std::string, std::vector<std::string>>{{"k_outputs", {"in_place"}}, {"tile_scale", {"pow2"}}}));
  ASSERT_EQ(kernel.declared->requirements.size(), 3U);
  EXPECT_EQ(kernel.declared->requirements[1].that.text(), "!indexer.present || indexer.block_stride_padding == 0");
  EXPECT_EQ(kernel.declared->requirements[2].say, "a query");
}

// Every name that cases have is one that a requirement may use.
TEST_F(LibraryTest, RequirementsMayNameAllThatCasesHave) {
  for (const auto& [name, op] : bench_.ops) {
    const Generator generator(op, bench_.generate_options(op));
    for (std::uint64_t index = 0; index < 12; ++index) {
      for (const auto& [term, value] : environment_of(op, generator(3, index))) {
        Declaration declaration;
        declaration.requirements.push_back({Expression(term), ""});
        ASSERT_NO_THROW(check_declaration(declaration, op, "test")) << name;
      }
    }
  }
}

TEST_F(LibraryTest, CasesThatItIsNotForAreSkippedWithTheReason) {
  const auto reason = [&](const std::string& name, const Case& value) {
    const Verdict found = verdict(load(name), value);
    EXPECT_EQ(found.status, Status::skipped) << name;
    EXPECT_EQ(found.reason, Reason::none);
    EXPECT_TRUE(found.violations.empty());
    return found.detail;
  };
  EXPECT_EQ(reason("fused_eh_norm", small("", R"("division": "full")")),
            "rank 0: it follows the contract option division as rn, and the case has full");
  // An option that is not declared is followed as its default.
  EXPECT_EQ(reason("writes_nothing", small("", R"("norm_round": "bf16")")),
            "rank 0: it follows the contract option norm_round as none, and the case has bf16");
  EXPECT_EQ(reason("few_tensors", small()), "rank 0: it does not know the tensor positions, which the case has");
  EXPECT_EQ(reason("requires_widths", small(R"("hidden_size": 9)")), "rank 0: it requires rows of a multiple of 8");
  EXPECT_EQ(reason("divides_by_zero", small()),
            "rank 0: its requirement cannot be worked out for the case: expression \"T / (T - T) == 0\": divides by zero");
  EXPECT_EQ(reason("skips", small()), "rank 0: not on a Monday?");
}

TEST_F(LibraryTest, ALawIsSilentOfACaseThatItIsNotFor) {
  const Kernel kernel = load("fused_eh_norm");
  for (const Law& law : all_laws()) {
    if (!obeys(op(), law)) continue;
    Trial trial(bench_.bench, op(), kernel, small("", R"("division": "full")"));
    EXPECT_EQ(verdict_of(law, apply(law, trial)).status, Status::skipped) << law.name;
  }
}

TEST_F(LibraryTest, WhatRunAnswersIsAVerdict) {
  const auto refused = [&](const std::string& name) {
    const Verdict found = verdict(name);
    EXPECT_EQ(found.status, Status::fail) << name;
    EXPECT_EQ(found.reason, Reason::launch_refused) << name;
    return found.detail;
  };
  EXPECT_EQ(refused("refuses"), "rank 0: no such grid");
  EXPECT_EQ(refused("refuses_without_a_word"), "rank 0: it gave no reason");
  EXPECT_EQ(refused("message_without_an_end"), "rank 0: " + std::string(4095, 'A'));
  EXPECT_EQ(refused("answers_seven"), "rank 0: dcpcheck_run() answered 7, which is no answer");
  EXPECT_EQ(refused("throws"), "rank 0: dcpcheck_run() threw an exception: out of tiles");
  EXPECT_EQ(verdict("writes_nothing").reason, Reason::unwritten);
}

TEST_F(LibraryTest, AChangedFloatingPointModeIsAVerdictAndIsPutBack) {
  const auto changed = [&](const std::string& name) {
    const Verdict found = verdict(name);
    EXPECT_EQ(found.status, Status::fail) << name;
    EXPECT_EQ(found.reason, Reason::floating_point_mode) << name;
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    const DefaultFloatingPoint mode;
    EXPECT_EQ(mode.changed(), "");
    return found.detail;
  };
  EXPECT_THAT(changed("rounds_upward"), StartsWith("rank 0: the kernel left its thread's floating-point mode changed: "));
#if defined(__x86_64__)
  EXPECT_THAT(changed("rounds_upward"), HasSubstr("rounding is up, x87 rounding is up"));
  EXPECT_THAT(changed("flushes_to_zero"),
              HasSubstr("changed: subnormal results are flushed to zero, subnormal operands count as zero"));
  EXPECT_THAT(changed("x87_in_single"), HasSubstr("changed: x87 precision is reduced"));
#endif
}

TEST_F(LibraryTest, LoadingALibraryLeavesTheFloatingPointMode) {
  volatile float smallest = 1e-40F;  // subnormal
  const Kernel kernel = load("fast_math");
  EXPECT_GT(smallest * 1.0F, 0.0F);
  EXPECT_EQ(verdict(kernel, small()).status, Status::pass);
}

TEST_F(LibraryTest, TheExampleAgreesWithOursOnGeneratedCases) {
  const Kernel example = load("fused_eh_norm");
  const Kernel& ours = bench_.kernel("fused_eh_norm");
  GenerateOptions options = bench_.generate_options(op());
  options.cost = 10'000;
  options.large_every = 0;
  options.check = [&](const Case& value) {
    const std::string why = why_not(*example.declared, make_plan(op(), value, TestBench::kMemory));
    if (!why.empty()) throw InputError(why);
  };
  const Generator generator(op(), options);
  const std::int64_t cases = kSanitized ? 50 : 500;
  std::atomic<std::int64_t> compared{0};
  parallel_parts(cases, static_cast<int>(std::thread::hardware_concurrency()), 25, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const Case value = generator(54907, static_cast<std::uint64_t>(index));
      const Verdict theirs = verdict(example, value), own = verdict(ours, value);
      compared += theirs.compared;
      EXPECT_EQ(theirs.status, Status::pass) << name_of(theirs.reason) << " " << theirs.detail << "\n"
                                             << json::dump(case_to_json(op(), value));
      EXPECT_EQ(own.status, theirs.status);
      EXPECT_EQ(own.compared, theirs.compared);
      EXPECT_EQ(own.written, theirs.written);
      if (HasFailure()) return;
    }
  });
  EXPECT_GT(compared.load(), 10 * cases);
}

TEST_F(LibraryTest, TheFaultyExampleIsCaught) {
  const Verdict found = verdict(load("eps_left_out"), small(R"("hidden_size": 64, "embeds_eps": 1, "hidden_eps": 1)"));
  EXPECT_EQ(found.status, Status::fail);
  EXPECT_EQ(found.reason, Reason::inadmissible);
}

TEST_F(LibraryTest, TheCudaExampleAgreesWithOursOnGeneratedCases) {
  std::string why;
  if (!cuda_available(&why)) GTEST_SKIP() << why;
  const Kernel example = load("fused_eh_norm_cuda");
  EXPECT_FALSE(example.host);
  const std::unique_ptr<Backend> cuda = make_cuda_backend();
  GenerateOptions options = bench_.generate_options(op());
  options.check = [&](const Case& value) {
    const std::string not_for = why_not(*example.declared, make_plan(op(), value, TestBench::kMemory));
    if (!not_for.empty()) throw InputError(not_for);
  };
  const Generator generator(op(), options);
  for (std::uint64_t index = 0; index < 300; ++index) {
    const Case value = generator(54907, index);
    Prepared prepared = prepare(op(), bench_.references.at("fused_eh_norm"), value, TestBench::kMemory, 1);
    const Verdict found = run_case(prepared, example, *cuda, {}).verdict;
    ASSERT_EQ(found.status, Status::pass) << found.detail << "\n" << json::dump(case_to_json(op(), value));
  }
}

}  // namespace
}  // namespace dcpcheck
