// The pipeline, from outside: tokens that are the same however the work is split, and kernels that are wrong in one way each.
#include "harness/exec/generate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "harness/adapters/builtin.hpp"
#include "harness/core/error.hpp"
#include "harness/core/slow_test.hpp"
#include "harness/exec/reference_memory.hpp"
#include "reference/builtin_ops.hpp"

namespace dcpcheck {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class GenerateTest : public testing::Test {
 protected:
  GenerateTest() {
    for (const auto& [name, op] : builtins_) {
      ops_.emplace(name, op.op);
      references_.emplace(name, op.reference);
    }
  }

  // Small sizes, so that a run takes milliseconds; keys of three widths, so that heads differ.
  static Case small(std::vector<Request> batch, std::int64_t tp = 4, std::int64_t world_size = 1) {
    Case value;
    value.op = "generate";
    value.seed = 54907;
    value.geometry.batch = std::move(batch);
    value.geometry.tp = tp;
    value.geometry.world_size = world_size;
    value.geometry.caches["mla"].block_size = 16;
    value.geometry.caches["mla"].kernel_block_size = 16;
    value.params = {{"heads", std::int64_t{1}},
                    {"qk_nope_head_dim", std::int64_t{8}},
                    {"qk_rope_head_dim", std::int64_t{8}},
                    {"v_head_dim", std::int64_t{8}},
                    {"q_lora_rank", std::int64_t{64}},
                    {"kv_lora_rank", std::int64_t{48}},
                    {"max_position", std::int64_t{1024}},
                    {"indexer", false},
                    {"tokens", std::int64_t{6}}};
    return value;
  }

  // What a failed expectation shows of a result.
  static std::string told(const CaseResult& result) {
    std::string text = result.verdict.detail;
    std::set<std::string> seen;
    for (const Violation& violation : result.verdict.violations) {
      if (!seen.insert(violation.op + violation.buffer + std::string(name_of(violation.reason))).second) continue;
      text += "\n" + violation.stage + " " + violation.op + " " + violation.buffer + " rank " + std::to_string(violation.rank) +
              " " + std::string(name_of(violation.reason)) + " " + std::to_string(violation.count);
      if (!violation.first.empty()) {
        const Element& element = violation.first.front();
        text += " [";
        for (const std::int64_t i : element.index) text += std::to_string(i) + " ";
        text += "] " + element.got + " for " + element.admissible + ";";
      }
    }
    return text;
  }

  Case complete(Case value) const {
    const Op& op = ops_.at("generate");
    for (const Param& param : op.params) value.params.try_emplace(param.name, param.value);
    for (const Option& option : op.contract) value.contract.try_emplace(option.name, option.values.front());
    return value;
  }

  CaseResult run(const Case& given, const Kernel* replaced = nullptr, int threads = 1) {
    const Case value = complete(given);
    const Op& op = ops_.at("generate");
    check_generate(ops_, op, value, std::int64_t{1} << 30, "case");
    const Prepared prepared = prepare(op, {}, value, std::int64_t{1} << 30, threads);
    Parts parts;
    for (const std::string& name : op.pipeline) {
      const Kernel* kernel = &fixed(name);
      if (replaced != nullptr && replaced->op == name) kernel = replaced;
      parts.emplace(name, Part{&ops_.at(name), &references_.at(name), kernel});
    }
    RunOptions options;
    options.threads = threads;
    return run_generate(prepared, parts, *backend_, options, memory_);
  }

  const Kernel& named(const std::string& op, const std::string& fault) const {
    for (const Kernel& kernel : kernels_) {
      if (kernel.op == op && kernel.fault == fault) return kernel;
    }
    throw HarnessError("no kernel " + op + "@" + fault);
  }
  const Kernel& fixed(const std::string& op) const { return named(op, ""); }

  // The right kernel of `op`, with `spoil` let loose on its results.
  template <class Spoil>
  Kernel spoiled(const std::string& op, Spoil spoil) const {
    Kernel kernel = fixed(op);
    kernel.fault = "spoiled";
    kernel.host = [right = kernel.host, spoil](const Launch& launch) {
      LaunchError refused = right(launch);
      spoil(launch);
      return refused;
    };
    return kernel;
  }

  static std::set<std::string> ops_at_fault(const CaseResult& result) {
    std::set<std::string> ops;
    for (const Violation& violation : result.verdict.violations)
      if (violation.buffer != "tokens") ops.insert(violation.op);
    return ops;
  }
  static bool tokens_violated(const CaseResult& result) {
    return std::any_of(result.verdict.violations.begin(), result.verdict.violations.end(),
                       [](const Violation& violation) { return violation.buffer == "tokens"; });
  }
  static std::set<std::string> stages(const CaseResult& result) {
    std::set<std::string> stages;
    for (const Violation& violation : result.verdict.violations)
      if (!violation.stage.empty()) stages.insert(violation.stage);
    return stages;
  }

  const std::map<std::string, BuiltinOp, std::less<>> builtins_ = builtin_ops();
  const std::vector<Kernel> kernels_ = builtin_kernels();
  Ops ops_;
  std::map<std::string, Reference, std::less<>> references_;
  std::unique_ptr<Backend> backend_ = make_host_backend();
  ReferenceMemory memory_;
};

// All steps are sure of their choice, so that equality is strict.
void expect_sure(const CaseResult& result) {
  ASSERT_EQ(result.verdict.status, Status::pass) << result.verdict.detail;
  for (const TokenStep& step : result.tokens->steps) {
    EXPECT_TRUE(step.known) << step.stage;
    EXPECT_GT(step.margin, step.bound) << step.stage;
  }
}

TEST_F(GenerateTest, TheFixedKernelsPass) {
  const CaseResult result = run(small({{20, 37}, {0, 5}}, 4, 2));
  expect_sure(result);
  EXPECT_THAT(result.tokens->ids, SizeIs(2));
  EXPECT_THAT(result.tokens->ids, Each(SizeIs(6)));
  EXPECT_EQ(result.tokens->ids, result.tokens->poison_b_ids);
  EXPECT_EQ(result.tokens->digest, result.tokens->poison_b_digest);
  EXPECT_THAT(result.tokens->steps, SizeIs(6));
  EXPECT_EQ(result.tokens->steps.front().stage, "prefill.0");
  EXPECT_EQ(result.tokens->steps.back().stage, "decode.4");
  EXPECT_EQ(result.verdict.written, result.verdict.must_write);
  EXPECT_EQ(result.verdict.tainted, 0);
  EXPECT_GT(result.verdict.compared, 0);
}

TEST_F(GenerateTest, EveryInputDecides) {
  const CaseResult result = run(small({{20, 37}}));
  Case other = small({{20, 37}});
  other.seed = 1;
  EXPECT_NE(run(other).tokens->ids, result.tokens->ids);
  for (const char* table : {"q_c", "kv_c", "k_pe", "q_weight", "kv_weight", "logits"}) {
    other = small({{20, 37}});
    other.values[table] = "constant:1";
    EXPECT_NE(run(other).tokens->ids, result.tokens->ids) << table;
  }
}

TEST_F(GenerateTest, ThreadsChangeNothing) {
  const CaseResult one = run(small({{20, 37}, {0, 5}}, 4, 2)), four = run(small({{20, 37}, {0, 5}}, 4, 2), nullptr, 4);
  EXPECT_EQ(one.all_digest, four.all_digest);
}

TEST_F(GenerateTest, PrefillIsTheSameForEveryWorldSize) {
  std::map<std::string, std::string> alone = run(small({{32, 30}, {0, 9}}, 4, 1)).outputs;
  std::map<std::string, std::string> split = run(small({{32, 30}, {0, 9}}, 4, 4)).outputs;
  for (const char* buffer : {"dense_prefill.out", "dense_prefill.lse", "merge_chunks.out", "fused_norm_rope.q_c_out"}) {
    for (int rank = 0; rank < 4; ++rank) {
      const std::string name = "rank" + std::to_string(rank) + "/prefill." + buffer;
      ASSERT_TRUE(alone.contains(name)) << name;
      EXPECT_EQ(alone[name], split[name]) << name;
    }
  }
  EXPECT_NE(alone.at("rank1/prefill.fused_norm_rope.mla_cache"), split.at("rank1/prefill.fused_norm_rope.mla_cache"));
}

// Sanitizers make these take minutes: there some of the ways to split the work stand for the others.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kEach = 7;
#else
constexpr int kEach = 1;
#endif

// However the work is split, the tokens are those of one rank that holds everything.
class SplitTest : public GenerateTest {
 protected:
  void expect_same(const Case& value, const Tokens& tokens, const std::string& what) {
    if (++ways_ % kEach != 0) return;
    const CaseResult result = run(value);
    expect_sure(result);
    EXPECT_EQ(result.tokens->ids, tokens.ids) << what;
  }
  int ways_ = 0;
  static void blocks(Case& value, std::int64_t block_size, std::int64_t kernel_block_size) {
    for (auto& [name, group] : value.geometry.caches) {
      group.block_size = block_size;
      group.kernel_block_size = kernel_block_size;
    }
  }
};

TEST_F(SplitTest, OverRanksAndBlocksInEveryLayout) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  for (const char* layout : {"bf16", "fp8", "fp8_ds_mla"}) {
    Case value = small({{100, 60}, {0, 3}}, 8);
    value.params["mla_layout"] = std::string(layout);
    if (layout == std::string("fp8_ds_mla")) {
      value.params["kv_lora_rank"] = std::int64_t{512};
      value.params["qk_rope_head_dim"] = std::int64_t{64};
    }
    blocks(value, 64, 64);
    const CaseResult alone = run(value);
    expect_sure(alone);
    for (const std::int64_t world_size : {1, 2, 4, 8}) {
      for (const std::int64_t interleave : {1, 2, 16, 64}) {
        value.geometry.world_size = world_size;
        value.geometry.interleave = interleave;
        expect_same(value, *alone.tokens,
                    std::string(layout) + " W " + std::to_string(world_size) + " I " + std::to_string(interleave));
      }
    }
    value.geometry.world_size = 4;
    value.geometry.interleave = 16;
    for (const std::int64_t block_size : {16, 64, 128}) {
      for (const std::int64_t kernel_block_size : {16, 64}) {
        if (block_size < kernel_block_size) continue;
        blocks(value, block_size, kernel_block_size);
        expect_same(value, *alone.tokens,
                    std::string(layout) + " B " + std::to_string(block_size) + " Bk " + std::to_string(kernel_block_size));
      }
    }
  }
}

TEST_F(SplitTest, OverChunksAndPrefixes) {
  const std::int64_t prompt = 530;
  const CaseResult alone = run(small({{0, prompt}}, 8));
  expect_sure(alone);
  for (const std::int64_t world_size : {1, 8}) {
    for (const std::int64_t budget : {64, 512, 2048}) {
      Case value = small({{0, prompt}}, 8, world_size);
      value.geometry.max_batched_tokens = budget;
      value.params["context_workspace"] = budget;
      expect_same(value, *alone.tokens, "W " + std::to_string(world_size) + " budget " + std::to_string(budget));
    }
  }
  for (const std::int64_t cached : {0, 1, 63, 64, 65, 511}) {
    Case value = small({{cached, prompt - cached}}, 8, 4);
    value.params["context_workspace"] = std::int64_t{128};
    expect_same(value, *alone.tokens, "split at " + std::to_string(cached));
  }
}

TEST_F(SplitTest, ARequestAloneAndInABatch) {
  // Token tables are shared, prompts are drawn one after the other: the first request's is the same in both.
  const CaseResult alone = run(small({{20, 37}}, 4, 2)), batch = run(small({{20, 37}, {0, 5}, {64, 1}}, 4, 2));
  expect_sure(alone);
  EXPECT_EQ(batch.tokens->ids.front(), alone.tokens->ids.front());
}

TEST_F(GenerateTest, KGatedIsTheFirstCauseAndTheOnlyOne) {
  const Kernel& k_gated = named("fused_norm_rope", "k_gated");
  const CaseResult fixed = run(small({{0, 60}}, 4, 4)), broken = run(small({{0, 60}}, 4, 4), &k_gated);
  EXPECT_EQ(broken.verdict.status, Status::fail);
  EXPECT_THAT(ops_at_fault(broken), testing::ElementsAre("fused_norm_rope")) << told(broken);
  EXPECT_THAT(stages(broken), testing::ElementsAre("prefill.0"));
  for (const Violation& violation : broken.verdict.violations)
    EXPECT_EQ(violation.reason, violation.buffer == "tokens" ? Reason::uninitialised_read : Reason::unwritten);
  EXPECT_GT(broken.verdict.tainted, 0);
  EXPECT_NE(broken.tokens->ids, fixed.tokens->ids);
  EXPECT_NE(broken.tokens->ids, broken.tokens->poison_b_ids);
  EXPECT_TRUE(tokens_violated(broken));
  EXPECT_FALSE(broken.tokens->steps.front().known);
  // Alone, no rank leaves a row to another one.
  const CaseResult alone = run(small({{0, 60}}, 4, 1), &k_gated);
  EXPECT_EQ(alone.verdict.status, Status::pass);
  EXPECT_EQ(alone.tokens->ids, fixed.tokens->ids);
}

TEST_F(GenerateTest, QGatedSpoilsDecodeToo) {
  const Kernel& q_gated = named("fused_norm_rope", "q_gated");
  const CaseResult broken = run(small({{0, 60}}, 4, 4), &q_gated);
  EXPECT_THAT(ops_at_fault(broken), testing::ElementsAre("fused_norm_rope")) << told(broken);
  EXPECT_THAT(stages(broken), Contains("decode.0"));
  EXPECT_TRUE(tokens_violated(broken));
}

TEST_F(GenerateTest, CacheUnguardedLeavesTheTokens) {
  const Kernel& unguarded = named("fused_norm_rope", "cache_unguarded");
  const CaseResult fixed = run(small({{0, 60}}, 4, 4)), broken = run(small({{0, 60}}, 4, 4), &unguarded);
  EXPECT_EQ(broken.verdict.status, Status::fail);
  EXPECT_THAT(ops_at_fault(broken), testing::ElementsAre("fused_norm_rope")) << told(broken);
  EXPECT_EQ(broken.tokens->ids, fixed.tokens->ids);
  EXPECT_FALSE(tokens_violated(broken));
}

// Whatever a fault does to what follows, it is its own op that is named.
TEST_F(GenerateTest, EveryFaultIsFoundInItsOwnOp) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  Case value = small({{70, 40}, {0, 9}, {33, 1}}, 4, 4);
  value.params["context_workspace"] = std::int64_t{48};
  value.params["mla_layout"] = std::string("fp8");
  const std::vector<std::string>& pipeline = ops_.at("generate").pipeline;
  std::set<std::string> caught;
  for (const Kernel& kernel : kernels_) {
    if (kernel.fault.empty() || std::find(pipeline.begin(), pipeline.end(), kernel.op) == pipeline.end()) continue;
    if (kernel.reason == "law") continue;  // within every element's bounds
    const CaseResult result = run(value, &kernel);
    if (result.verdict.status == Status::pass) continue;  // an edge case's to find
    EXPECT_THAT(ops_at_fault(result), testing::ElementsAre(kernel.op)) << kernel.name << told(result);
    caught.insert(kernel.op);
  }
  EXPECT_EQ(caught, (std::set<std::string>{"compute_slot_mapping", "dense_prefill", "fused_norm_rope", "gather_cache",
                                           "merge_chunks", "merge_ranks", "reorg_context"}));
}

// A byte of another token's record, written over in both runs alike: no element downstream is wrong by its own inputs.
TEST_F(GenerateTest, WhatWentAstrayTaintsWhatReadsIt) {
  const Kernel stray = spoiled("fused_norm_rope", [](const Launch& launch) {
    if (launch.plan.live != 1 || launch.rank != 0) return;  // decode: the first token's record, wherever it lies
    const View& cache = launch.tensors.find("mla_cache")->second;
    auto* const bytes = static_cast<std::uint8_t*>(cache.data);
    const std::int64_t all = launch.plan.tensor("mla_cache").bytes();
    for (std::int64_t i = 0; i < all; ++i) bytes[i] = bytes[i] == 0x42 ? 0x43 : bytes[i];
  });
  const CaseResult result = run(small({{0, 60}}, 4, 4), &stray);
  EXPECT_THAT(ops_at_fault(result), testing::ElementsAre("fused_norm_rope"));
  EXPECT_THAT(stages(result), Not(Contains("prefill.0")));
  EXPECT_GT(result.verdict.tainted, 0);
  EXPECT_FALSE(result.tokens->steps.back().known);
}

TEST_F(GenerateTest, SlotsOutsideTheCacheEndTheRun) {
  const Kernel wild = spoiled("compute_slot_mapping", [](const Launch& launch) {
    const View& slots = launch.tensors.find("slot_mapping")->second;
    if (launch.plan.live == 1) static_cast<std::int64_t*>(slots.data)[0] = std::int64_t{1} << 40;
  });
  const CaseResult result = run(small({{0, 20}}, 2, 2), &wild);
  EXPECT_EQ(result.verdict.status, Status::fail);
  EXPECT_EQ(result.verdict.reason, Reason::inadmissible);
  EXPECT_THAT(result.verdict.detail, HasSubstr("stopped at decode.0"));
  EXPECT_THAT(result.verdict.detail, HasSubstr("1099511627776"));
  EXPECT_THAT(ops_at_fault(result), testing::ElementsAre("compute_slot_mapping"));
  EXPECT_THAT(result.tokens->ids, Each(SizeIs(1))) << "what came before stands";
  const Kernel twice = spoiled("compute_slot_mapping", [](const Launch& launch) {
    const View& slots = launch.tensors.find("slot_mapping")->second;
    auto* const first = static_cast<std::int64_t*>(slots.data);
    if (launch.plan.live > 2) first[1] = first[0] = 17;
  });
  EXPECT_THAT(run(small({{0, 20}}, 2, 2), &twice).verdict.detail, HasSubstr("to two tokens"));
}

TEST_F(GenerateTest, ARefusedLaunchEndsTheRun) {
  Kernel refusing = fixed("merge_ranks");
  refusing.host = [](const Launch&) { return LaunchError("no such grid"); };
  const CaseResult result = run(small({{0, 20}}, 2, 2), &refusing);
  EXPECT_EQ(result.verdict.reason, Reason::launch_refused);
  EXPECT_THAT(result.verdict.detail, HasSubstr("merge_ranks"));
  EXPECT_THAT(result.verdict.detail, HasSubstr("decode.0"));
}

// A kernel that reads what it should not shows by the two runs alone.
TEST_F(GenerateTest, ReadingMemoryThatNobodyWroteIsItsOwnCause) {
  const Kernel leaking = spoiled("dense_prefill", [](const Launch& launch) {
    if (!launch.plan.value.flag("causal")) return;
    const View& out = launch.tensors.find("out")->second;
    const View& lse = launch.tensors.find("lse")->second;
    auto* const words = static_cast<std::uint32_t*>(out.data);
    const std::uint32_t guard = static_cast<const std::uint32_t*>(lse.data)[launch.plan.tensor("lse").bytes() / 4];
    words[0] = guard * 2654435761U & 0x3FFFFFFFU;
  });
  const CaseResult result = run(small({{0, 20}}, 2, 2), &leaking);
  EXPECT_THAT(ops_at_fault(result), testing::ElementsAre("dense_prefill"));
  ASSERT_FALSE(result.verdict.violations.empty());
  EXPECT_EQ(result.verdict.violations.front().reason, Reason::uninitialised_read);
  EXPECT_EQ(result.verdict.violations.front().stage, "prefill.0");
}

// Where the two runs have other tokens, a right kernel's outputs may differ though the reference says the same of both.
TEST_F(GenerateTest, ARightKernelIsNotBlamedForInputsThatDiffer) {
  Case value = small({{1, 7}, {5, 1}, {1, 7}}, 2, 2);
  value.seed = 0x829a999364923e42;
  value.geometry.interleave = 4;
  value.geometry.caches["mla"].block_size = 4;
  value.geometry.caches["mla"].kernel_block_size = 4;
  value.params["heads"] = std::int64_t{3};
  value.params["tokens"] = std::int64_t{2};
  value.params["mla_layout"] = std::string("fp8");
  value.params["q_lora_rank"] = std::int64_t{7};
  value.params["kv_lora_rank"] = std::int64_t{31};
  value.params["qk_nope_head_dim"] = std::int64_t{7};
  value.params["qk_rope_head_dim"] = std::int64_t{2};
  value.params["rope_interleaved"] = false;
  value.params["rope_table_dtype"] = std::string("bf16");
  value.params["max_position"] = std::int64_t{256};
  value.params["judged_rows"] = std::int64_t{2};
  value.values["kv_c"] = "mixed";
  const CaseResult result = run(value, &named("fused_norm_rope", "k_gated"));
  EXPECT_THAT(ops_at_fault(result), testing::ElementsAre("fused_norm_rope")) << told(result);
}

// Wrong slots that one stage gives to tokens of another are the slot mapping's fault alone.
TEST_F(GenerateTest, SlotsThatWereWrittenBeforeAreWrittenAnew) {
  Case value = small({{63, 1}, {0, 1}, {64, 1}}, 4, 2);
  value.geometry.interleave = 4;
  value.geometry.caches["mla"].block_size = 4;
  value.geometry.caches["mla"].kernel_block_size = 2;
  value.geometry.max_batched_tokens = 2;
  value.params["mla_layout"] = std::string("fp8");
  const CaseResult result = run(value, &named("compute_slot_mapping", "ownership_in_kernel_blocks"));
  EXPECT_THAT(ops_at_fault(result), testing::ElementsAre("compute_slot_mapping")) << told(result);
}

TEST_F(GenerateTest, WidthsOfZeroAndOne) {
  Case value = small({{5, 3}}, 4, 4);
  value.params["qk_rope_head_dim"] = std::int64_t{0};
  expect_sure(run(value));
  value.params["qk_rope_head_dim"] = std::int64_t{8};
  value.params["qk_nope_head_dim"] = std::int64_t{0};
  value.params["kv_lora_rank"] = std::int64_t{1};
  value.params["tokens"] = std::int64_t{1};
  EXPECT_EQ(run(value).verdict.status, Status::pass);
}

TEST_F(GenerateTest, ASampleOfTheRowsIsJudged) {
  Case value = small({{0, 200}}, 2, 2);
  value.params["judged_rows"] = std::int64_t{10};
  const CaseResult sampled = run(value), whole = run(small({{0, 200}}, 2, 2));
  expect_sure(sampled);
  EXPECT_EQ(sampled.tokens->ids, whole.tokens->ids);
  EXPECT_EQ(whole.verdict.left_out, 0);
  EXPECT_EQ(sampled.verdict.left_out, 2 * 190 * (8 + 1)) << "ranks, rows, a head's output and LSE";
  // Rows that are left out must still be written, and be the same in both runs.
  const Kernel gap = spoiled("dense_prefill", [](const Launch& launch) {
    if (launch.plan.live != 200) return;
    const View& out = launch.tensors.find("out")->second;
    std::memcpy(static_cast<std::byte*>(out.data) + 101 * 8 * 4, static_cast<std::byte*>(out.data) - 64, 32);
  });
  EXPECT_THAT(ops_at_fault(run(value, &gap)), testing::ElementsAre("dense_prefill"));
}

TEST_F(GenerateTest, RefusesWhatItCannotRun) {
  const auto refusal = [&](const Case& value) -> std::string {
    const Case whole = complete(value);
    try {
      make_plan(ops_.at("generate"), whole, std::int64_t{1} << 30, "c");
      check_generate(ops_, ops_.at("generate"), whole, std::int64_t{1} << 30, "c");
    } catch (const InputError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_THAT(refusal(small({{0, 20}})), IsEmpty());
  EXPECT_THAT(refusal(small({{20, 0}})), HasSubstr("never cached"));
  EXPECT_THAT(refusal(small({{0, 5}, {20, 0}})), HasSubstr("never cached"));
  Case value = small({{0, 1020}});
  EXPECT_THAT(refusal(value), HasSubstr("max_position is 1024"));
  value = small({{0, 20}});
  value.geometry.caches["mla"].slot_mapping = "random";
  EXPECT_THAT(refusal(value), HasSubstr("slot_mapping"));
  value = small({{0, 20}});
  value.params["indexer"] = true;
  value.geometry.caches["indexer"].slot_mapping = "random";
  EXPECT_THAT(refusal(value), HasSubstr("\"random\""));
  value = small({{0, 900}});
  value.params["heads"] = std::int64_t{1024};
  value.params["v_head_dim"] = std::int64_t{4096};
  EXPECT_THAT(refusal(value), HasSubstr("memory budget"));
}

// ---- ranks on several devices ----

// The host's, with something done to what goes from rank to rank.
class Tampering : public Backend {
 public:
  using Tamper = std::function<void(std::span<const Parcel>, std::vector<Bytes>&)>;
  explicit Tampering(Tamper tamper) : tamper_(std::move(tamper)) {}
  std::string name() const override { return host_->name(); }
  std::string description() const override { return host_->description(); }
  bool can_run(const Kernel& kernel) const override { return host_->can_run(kernel); }
  std::shared_ptr<std::byte> image_memory(std::int64_t bytes) override { return host_->image_memory(bytes); }
  std::unique_ptr<Placement> place(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ArenaLayout& arena,
                                   std::int64_t seat) override {
    seats.insert(seat);
    return host_->place(plan, inputs, rank, arena, seat);
  }
  std::vector<std::string> devices() const override { return host_->devices(); }
  std::string transport() const override { return "tampered"; }
  std::vector<Bytes> carry(std::span<const Parcel> parcels) override {
    std::vector<Bytes> arrived = host_->carry(parcels);
    tamper_(parcels, arrived);
    return arrived;
  }

  std::set<std::int64_t> seats;

 private:
  std::unique_ptr<Backend> host_ = make_host_backend();
  Tamper tamper_;
};

TEST_F(GenerateTest, EveryRankLaunchesOnItsSeatAndAllThatRanksShareIsCarried) {
  const CaseResult plain = run(small({{20, 37}, {0, 5}}, 4, 2));
  std::set<std::pair<std::int64_t, std::int64_t>> ways;
  auto backend = std::make_unique<Tampering>([&](std::span<const Parcel> parcels, std::vector<Bytes>&) {
    for (const Parcel& parcel : parcels) ways.insert({parcel.from, parcel.to});
  });
  const Tampering& seen = *backend;
  backend_ = std::move(backend);
  const CaseResult carried = run(small({{20, 37}, {0, 5}}, 4, 2));
  EXPECT_EQ(carried.all_digest, plain.all_digest);
  EXPECT_EQ(carried.tokens->ids, plain.tokens->ids);
  EXPECT_EQ(seen.seats, (std::set<std::int64_t>{0, 1, 2, 3}));
  EXPECT_THAT(ways, SizeIs(16));  // the last hidden rows go from each rank to each
}

TEST_F(GenerateTest, WhatATransportSpoilsIsFound) {
  // Whatever rank 1 gets of rank 0 is not what rank 0 had.
  backend_ = std::make_unique<Tampering>([](std::span<const Parcel> parcels, std::vector<Bytes>& arrived) {
    for (std::size_t i = 0; i < parcels.size(); ++i)
      if (parcels[i].from == 0 && parcels[i].to == 1 && !arrived[i].empty()) arrived[i].front() ^= std::byte{1};
  });
  EXPECT_THROW(run(small({{0, 20}}, 2, 2)), HarnessError);
}

TEST_F(GenerateTest, ALostRankEndsTheCaseAndIsNamed) {
  for (const Status status : {Status::crash, Status::hang}) {
    backend_ = std::make_unique<Tampering>(
        [&](std::span<const Parcel>, std::vector<Bytes>&) { throw RankLost(status, "rank 1 is not there"); });
    const CaseResult result = run(small({{0, 20}}, 2, 2));
    EXPECT_EQ(result.verdict.status, status);
    EXPECT_EQ(result.verdict.reason, status == Status::hang ? Reason::timed_out : Reason::process_ended);
    EXPECT_THAT(result.verdict.detail, HasSubstr("rank 1 is not there"));
  }
}

}  // namespace
}  // namespace dcpcheck
