// The judge, from outside: kernels that are wrong in one known way each, and right ones.
#include "harness/exec/runner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "harness/adapters/builtin.hpp"
#include "harness/core/error.hpp"
#include "reference/builtin_ops.hpp"

namespace dcpcheck {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr const char* kSmall = R"({"op":"fused_norm_rope","seed":"0000000000000011",
  "geometry":{"batch":[{"cached":5,"uncached":8}],"padding":{"tokens":2},"max_batched_tokens":12,"tp":2,"dcp":{"world_size":2},
    "caches":{"mla":{"block_size":4},"indexer":{"block_size":4,"slot_mapping":"same"}}},
  "params":{"q_lora_rank":48,"index_topk":4,"index_k_out":true,"max_position":32,"mla_layout":"fp8_ds_mla"}})";

class RunnerTest : public testing::Test {
 protected:
  RunnerTest() {
    for (const auto& [name, op] : builtins_) ops_.emplace(name, op.op);
    for (const Kernel& kernel : builtin_kernels()) {
      if (kernel.op == "fused_norm_rope" && kernel.fault.empty()) fixed_ = kernel;
    }
  }

  CaseResult run(const Kernel& kernel, const char* text = kSmall, int threads = 1) {
    const Case value = case_from_json(ops_, json::parse(text, "c"), "c");
    Prepared prepared = prepare(ops_.at(value.op), builtins_.at(value.op).reference, value, std::int64_t{1} << 30, threads);
    RunOptions options;
    options.threads = threads;
    return run_case(prepared, kernel, *backend_, options);
  }

  // The right kernel, with `spoil` let loose on its results.
  template <class Spoil>
  Kernel spoiled(Spoil spoil) const {
    Kernel kernel = fixed_;
    const auto right = fixed_.host;
    kernel.host = [right, spoil](const Launch& launch) {
      LaunchError refused = right(launch);
      spoil(launch);
      return refused;
    };
    return kernel;
  }

  // (reason, buffer, rank) of each violation.
  static std::vector<std::tuple<Reason, std::string, std::int64_t>> found(const CaseResult& result) {
    std::vector<std::tuple<Reason, std::string, std::int64_t>> out;
    for (const Violation& violation : result.verdict.violations)
      out.emplace_back(violation.reason, violation.buffer, violation.rank);
    return out;
  }

  static std::byte* at(const Launch& launch, const char* name) {
    return static_cast<std::byte*>(launch.tensors.find(name)->second.data);
  }
  static std::int64_t bytes(const Launch& launch, const char* name) { return launch.plan.tensor(name).bytes(); }

  const std::map<std::string, BuiltinOp, std::less<>> builtins_ = builtin_ops();
  Ops ops_;
  Kernel fixed_;
  std::unique_ptr<Backend> backend_ = make_host_backend();
};

using Found = std::vector<std::tuple<Reason, std::string, std::int64_t>>;

TEST_F(RunnerTest, TheRightKernelPasses) {
  const CaseResult result = run(fixed_);
  EXPECT_EQ(result.verdict.status, Status::pass);
  EXPECT_TRUE(result.verdict.violations.empty());
  EXPECT_EQ(result.verdict.written, result.verdict.must_write);
  EXPECT_GT(result.verdict.compared, 0);
  EXPECT_LT(result.verdict.worst.fraction, 1);
}

TEST_F(RunnerTest, AKernelThatWritesNothing) {
  Kernel kernel = fixed_;
  kernel.host = [](const Launch&) { return LaunchError(); };
  const CaseResult result = run(kernel);
  EXPECT_EQ(result.verdict.status, Status::fail);
  EXPECT_EQ(result.verdict.reason, Reason::unwritten);
  EXPECT_EQ(result.verdict.written, 0);
  for (const Violation& violation : result.verdict.violations) {
    EXPECT_EQ(violation.reason, Reason::unwritten);
    if (violation.buffer == "q_c_out") {
      EXPECT_THAT(violation.tokens, ElementsAre(Pair(0, 7)));
    }
  }
}

TEST_F(RunnerTest, AKernelThatWritesZeros) {
  const CaseResult result = run(spoiled([](const Launch& launch) {
    for (const char* name : {"q_c_out", "kv_c_out", "k_pe_out", "index_k_out"})
      std::memset(at(launch, name), 0, static_cast<std::size_t>(bytes(launch, name)));
  }));
  EXPECT_EQ(result.verdict.reason, Reason::inadmissible);
  EXPECT_EQ(result.verdict.violations.size(), 8U) << "four outputs on two ranks";
}

TEST_F(RunnerTest, AKernelThatWritesAConstant) {
  const CaseResult result = run(spoiled([](const Launch& launch) {
    for (std::int64_t i = 0; i < bytes(launch, "kv_c_out"); i += 2) std::memcpy(at(launch, "kv_c_out") + i, "\x80\x3F", 2);
  }));
  EXPECT_EQ(found(result), (Found{{Reason::inadmissible, "kv_c_out", 0}, {Reason::inadmissible, "kv_c_out", 1}}));
}

TEST_F(RunnerTest, AKernelThatCopiesItsInput) {
  const CaseResult result = run(spoiled([](const Launch& launch) {
    std::memcpy(at(launch, "q_c_out"), at(launch, "q_c"), static_cast<std::size_t>(bytes(launch, "q_c_out")));
  }));
  EXPECT_EQ(found(result), (Found{{Reason::inadmissible, "q_c_out", 0}, {Reason::inadmissible, "q_c_out", 1}}));
}

TEST_F(RunnerTest, OneWrongCodeInOneElement) {
  const CaseResult result = run(spoiled([](const Launch& launch) {
    if (launch.rank == 1) at(launch, "kv_c_out")[(3 * 512 + 17) * 2] ^= std::byte{2};
  }));
  ASSERT_EQ(found(result), (Found{{Reason::inadmissible, "kv_c_out", 1}}));
  const Violation& violation = result.verdict.violations.front();
  EXPECT_EQ(violation.count, 1);
  EXPECT_THAT(violation.tokens, ElementsAre(Pair(3, 3)));
  EXPECT_THAT(violation.first.front().index, ElementsAre(3, 17));
}

TEST_F(RunnerTest, OneWrongCodeInACache) {
  for (const std::int64_t field : {0, 1, 2}) {
    const CaseResult result = run(spoiled([field](const Launch& launch) {
      const TensorPlan& cache = launch.plan.tensor("mla_cache");
      std::int64_t slot = 0;
      std::memcpy(&slot, at(launch, "slot_mapping") + 8 * 4, 8);  // token 4, position 9: rank 1's
      if (slot >= 0)
        at(launch, "mla_cache")[cache.cache.address(slot, cache.cache.fields[static_cast<std::size_t>(field)]) + 1] ^=
            std::byte{0x10};
    }));
    ASSERT_GE(result.verdict.violations.size(), 1U) << field;
    EXPECT_EQ(result.verdict.violations.front().buffer, "mla_cache");
    EXPECT_EQ(result.verdict.violations.front().rank, 1);
    EXPECT_THAT(result.verdict.violations.front().tokens, ElementsAre(Pair(4, 4)));
  }
}

TEST_F(RunnerTest, OneByteOutside) {
  for (const std::int64_t byte : {std::int64_t{-1}, std::int64_t{-4096}}) {
    const CaseResult result = run(spoiled([byte](const Launch& launch) { at(launch, "q_c_out")[byte] ^= std::byte{1}; }));
    ASSERT_EQ(found(result), (Found{{Reason::guard, "q_c_out", 0}, {Reason::guard, "q_c_out", 1}}));
    EXPECT_EQ(result.verdict.violations.front().count, 1);
    EXPECT_THAT(result.verdict.violations.front().first.front().index, ElementsAre(byte));
  }
  const CaseResult after =
      run(spoiled([](const Launch& launch) { at(launch, "topk_indices")[bytes(launch, "topk_indices")] ^= std::byte{1}; }));
  EXPECT_EQ(found(after), (Found{{Reason::guard, "topk_indices", 0}, {Reason::guard, "topk_indices", 1}}));
}

TEST_F(RunnerTest, OneByteInsideThatIsNotItsToWrite) {
  // Of a row past the launch's tokens, of another token's cache row, of a record of the cached prefix.
  const CaseResult beyond = run(spoiled([](const Launch& launch) { at(launch, "topk_indices")[10 * 4 * 4] ^= std::byte{1}; }));
  EXPECT_EQ(found(beyond), (Found{{Reason::stray_write, "topk_indices", 0}, {Reason::stray_write, "topk_indices", 1}}));
  const CaseResult unowned = run(spoiled([](const Launch& launch) { at(launch, "mla_cache")[100] ^= std::byte{1}; }));
  EXPECT_EQ(found(unowned), (Found{{Reason::stray_write, "mla_cache", 0}, {Reason::stray_write, "mla_cache", 1}}))
      << "block 0 is no request's";
}

TEST_F(RunnerTest, PaddingRowsMayHoldAnything) {
  const CaseResult result = run(spoiled([](const Launch& launch) { at(launch, "q_c_out")[8 * 48 * 2] ^= std::byte{1}; }));
  EXPECT_EQ(result.verdict.status, Status::pass);
}

TEST_F(RunnerTest, AnUnwrittenElementAmongWrittenOnes) {
  const CaseResult result = run(spoiled([](const Launch& launch) {
    // What it held before: poison, of whichever run.
    const std::byte* guard = at(launch, "kv_c_out") - 2;
    std::memcpy(at(launch, "kv_c_out") + (2 * 512 + 5) * 2, guard, 2);
  }));
  ASSERT_EQ(found(result), (Found{{Reason::unwritten, "kv_c_out", 0}, {Reason::unwritten, "kv_c_out", 1}}));
  EXPECT_EQ(result.verdict.violations.front().count, 1);
  EXPECT_THAT(result.verdict.violations.front().first.front().index, ElementsAre(2, 5));
  EXPECT_EQ(result.verdict.must_write - result.verdict.written, 4);
}

TEST_F(RunnerTest, AValueThatDependsOnWhatLayThereBefore) {
  const CaseResult result = run(spoiled([](const Launch& launch) {
    std::uint16_t stale = 0;
    std::memcpy(&stale, at(launch, "kv_c_out") - 2, 2);
    stale = static_cast<std::uint16_t>(stale >> 3);
    std::memcpy(at(launch, "kv_c_out"), &stale, 2);
  }));
  EXPECT_EQ(found(result), (Found{{Reason::uninitialised_read, "kv_c_out", 0}, {Reason::uninitialised_read, "kv_c_out", 1}}));
}

TEST_F(RunnerTest, AValueThatDiffersFromRunToRun) {
  auto calls = std::make_shared<std::uint16_t>(std::uint16_t{0x3F80});
  const CaseResult result = run(spoiled([calls](const Launch& launch) {
    ++*calls;
    std::memcpy(at(launch, "kv_c_out"), calls.get(), 2);
  }));
  EXPECT_EQ(found(result), (Found{{Reason::race, "kv_c_out", 0}, {Reason::race, "kv_c_out", 1}}));
}

TEST_F(RunnerTest, AnInputThatWasChanged) {
  const CaseResult result = run(spoiled([](const Launch& launch) { at(launch, "q_weight")[0] ^= std::byte{1}; }));
  EXPECT_THAT(found(result), testing::Contains(std::tuple(Reason::input_changed, std::string("q_weight"), std::int64_t{0})));
}

TEST_F(RunnerTest, TheSignOfZeroAndNaNFollowTheContract) {
  // kv_c is zero but in no other way odd: both zeros are admissible where the reference's is a zero of any sign.
  const char* zeros = R"({"op":"fused_norm_rope","seed":"0000000000000011","geometry":{"batch":[{"uncached":3}],"caches":{}},
    "params":{"q_lora_rank":4,"kv_lora_rank":4,"index_topk":1,"max_position":4},"values":{"kv_c":"zero"}})";
  EXPECT_EQ(run(spoiled([](const Launch& launch) { at(launch, "kv_c_out")[1] ^= std::byte{0x80}; }), zeros).verdict.status,
            Status::pass);
  // A value that is not zero has one sign.
  EXPECT_EQ(run(spoiled([](const Launch& launch) { at(launch, "kv_c_out")[1] ^= std::byte{0x80}; })).verdict.reason,
            Reason::inadmissible);
  // NaN where a number is due is wrong, and a number where NaN is due; but any NaN will do where one is.
  EXPECT_EQ(run(spoiled([](const Launch& launch) { std::memcpy(at(launch, "kv_c_out"), "\xC0\x7F", 2); })).verdict.reason,
            Reason::inadmissible);
  const char* nans = R"({"op":"fused_norm_rope","seed":"0000000000000011","geometry":{"batch":[{"uncached":3}],"caches":{}},
    "params":{"q_lora_rank":4,"kv_lora_rank":4,"index_topk":1,"max_position":4},"values":{"kv_c":"nan"}})";
  EXPECT_EQ(run(fixed_, nans).verdict.status, Status::pass);
  EXPECT_EQ(run(spoiled([](const Launch& launch) { std::memcpy(at(launch, "kv_c_out"), "\x81\xFF", 2); }), nans).verdict.status,
            Status::pass);
  EXPECT_EQ(run(spoiled([](const Launch& launch) { std::memcpy(at(launch, "kv_c_out"), "\x80\x3F", 2); }), nans).verdict.reason,
            Reason::inadmissible);
}

TEST_F(RunnerTest, ARefusedLaunchIsNoPass) {
  Kernel kernel = fixed_;
  kernel.host = [](const Launch&) { return LaunchError("invalid configuration argument"); };
  const CaseResult result = run(kernel);
  EXPECT_EQ(result.verdict.status, Status::fail);
  EXPECT_EQ(result.verdict.reason, Reason::launch_refused);
}

TEST_F(RunnerTest, NothingDependsOnTheNumberOfThreads) {
  const char* wide =
      R"({"op":"fused_norm_rope","seed":"0000000000000011","geometry":{"batch":[{"uncached":700}],"tp":2,"dcp":{"world_size":2},
    "caches":{"mla":{},"indexer":{"slot_mapping":"same"}}},"params":{"q_lora_rank":48,"index_topk":4,"max_position":1024}})";
  Kernel gated;
  for (const Kernel& kernel : builtin_kernels()) {
    if (kernel.fault == "q_gated") gated = kernel;
  }
  const CaseResult one = run(gated, wide, 1);
  for (const int threads : {2, 16}) {
    const CaseResult many = run(gated, wide, threads);
    EXPECT_EQ(many.outputs, one.outputs);
    EXPECT_EQ(many.inputs_digest, one.inputs_digest);
    ASSERT_EQ(found(many), found(one));
    for (std::size_t i = 0; i < one.verdict.violations.size(); ++i) {
      EXPECT_EQ(many.verdict.violations[i].count, one.verdict.violations[i].count);
      EXPECT_EQ(many.verdict.violations[i].tokens, one.verdict.violations[i].tokens);
      EXPECT_EQ(many.verdict.violations[i].first.front().got, one.verdict.violations[i].first.front().got);
    }
  }
}

// Slots 3273603 and 6547206 lie across 2^31 and 2^32 bytes, the last one is the last of the cache.
constexpr const char* kSparse = R"({"op":"fused_norm_rope","seed":"0000000000000012",
  "geometry":{"batch":[{"uncached":6}],"caches":{"mla":{"block_size":64,"spare_blocks":400000,"sparse":true,"slot_mapping":"explicit",
    "slots":[[5,3273603,3273664,-1,6547206,25600127]]}}},
  "params":{"q_lora_rank":48,"indexer":false,"max_position":32,"mla_layout":"fp8_ds_mla"}})";

constexpr std::int64_t kTwo32 = std::int64_t{1} << 32;

TEST_F(RunnerTest, TheRightKernelPassesPast32BitsOfASparseCache) {
  const CaseResult result = run(fixed_, kSparse);
  EXPECT_EQ(result.verdict.status, Status::pass);
  EXPECT_EQ(result.verdict.written, result.verdict.must_write);
  EXPECT_GT(result.verdict.guarded, 100000);
  EXPECT_EQ(run(fixed_, kSparse, 2).outputs, result.outputs);
}

TEST_F(RunnerTest, AByteFarOutsideTheWindowsOfASparseCache) {
  for (const auto& [byte, reason] : std::map<std::int64_t, Reason>{
           {2 * kTwo32 + 12345, Reason::stray_write}, {400000, Reason::stray_write}, {-kTwo32 / 4 - 7, Reason::guard}}) {
    const CaseResult result =
        run(spoiled([byte = byte](const Launch& launch) { at(launch, "mla_cache")[byte] = std::byte{0x5A}; }), kSparse);
    ASSERT_EQ(found(result), (Found{{reason, "mla_cache", 0}})) << byte;
    const Violation& violation = result.verdict.violations.front();
    EXPECT_EQ(violation.count, 1);
    EXPECT_THAT(violation.first.front().index, ElementsAre(byte));
    EXPECT_EQ(violation.first.front().got, "0x5A");
  }
}

TEST_F(RunnerTest, APageOfASparseCacheThatIsTouchedAndNotChanged) {
  const CaseResult result =
      run(spoiled([](const Launch& launch) { at(launch, "mla_cache")[2 * kTwo32 + 12345] = std::byte{0}; }), kSparse);
  ASSERT_EQ(found(result), (Found{{Reason::stray_write, "mla_cache", 0}}));
  EXPECT_EQ(result.verdict.violations.front().first.front().got, "touched");
}

TEST_F(RunnerTest, WhatIsWrittenToTheImageOfA32BitAddress) {
  const CaseResult result =
      run(spoiled([](const Launch& launch) {
            const TensorPlan& cache = launch.plan.tensor("mla_cache");
            // The start of the record across 2^32, and of the one past 2^31 as a signed number.
            at(launch, "mla_cache")[cache.cache.address(6547206, cache.cache.fields[0]) + 400 - kTwo32] ^= std::byte{1};
            at(launch, "mla_cache")[cache.cache.address(3273664, cache.cache.fields[0]) + 1 - kTwo32] ^= std::byte{1};
          }),
          kSparse);
  ASSERT_EQ(found(result), (Found{{Reason::stray_write, "mla_cache", 0}, {Reason::guard, "mla_cache", 0}}));
  EXPECT_THAT(result.verdict.violations[0].first.front().index,
              ElementsAre(102300 * std::int64_t{41984} + 6 * 656 + 400 - kTwo32));
  EXPECT_THAT(result.verdict.violations[1].first.front().index, ElementsAre(51151 * std::int64_t{41984} + 1 - kTwo32));
}

TEST_F(RunnerTest, OffsetsIn32BitsAreCaught) {
  for (const Kernel& kernel : builtin_kernels()) {
    if (kernel.fault != "slot_times_stride_in_32_bits") continue;
    const CaseResult result = run(kernel, kSparse);
    EXPECT_EQ(
        found(result),
        (Found{{Reason::unwritten, "mla_cache", 0}, {Reason::stray_write, "mla_cache", 0}, {Reason::guard, "mla_cache", 0}}));
    EXPECT_THAT(result.verdict.violations.front().tokens, ElementsAre(Pair(2, 2), Pair(4, 5)));
    return;
  }
  FAIL() << "there is no such fault";
}

TEST_F(RunnerTest, AnInterruptEndsTheCase) {
  std::atomic<int> signal{2};
  const Case value = case_from_json(ops_, json::parse(kSmall, "c"), "c");
  Prepared prepared = prepare(ops_.at(value.op), builtins_.at(value.op).reference, value, std::int64_t{1} << 30, 1);
  RunOptions options;
  options.interrupted = &signal;
  EXPECT_THROW(run_case(prepared, fixed_, *backend_, options), Interrupted);
}

TEST_F(RunnerTest, DigestsDoNotKnowStridesOrPadding) {
  const char* plain =
      R"({"op":"fused_norm_rope","seed":"0000000000000011","geometry":{"batch":[{"uncached":5}],"caches":{"mla":{"block_size":4}}},
    "params":{"q_lora_rank":48,"index_topk":4,"max_position":8}})";
  const char* strided =
      R"({"op":"fused_norm_rope","seed":"0000000000000011","geometry":{"batch":[{"uncached":5}],"caches":{"mla":{"block_size":4,"block_stride_padding":64}}},
    "params":{"q_lora_rank":48,"index_topk":4,"max_position":8},"layout":{"q_c":{"stride":60,"offset":4},"q_c_out":{"stride":50}}})";
  EXPECT_EQ(run(fixed_, plain).outputs, run(fixed_, strided).outputs);
}

}  // namespace
}  // namespace dcpcheck
