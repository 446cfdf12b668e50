// Probing: kernels with a rule of their own, made of ours, and what is proposed for each.
#include "properties/probe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "harness/core/error.hpp"
#include "properties/probe_questions.hpp"
#include "properties/test_bench.hpp"

namespace dcpcheck {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Options = std::map<std::string, std::vector<std::string>>;

class ProbeTest : public testing::Test {
 protected:
  const Op& op(const std::string& name) const { return bench_.ops.at(name); }
  Probe probe_of(const Kernel& kernel) const { return probe(bench_.bench, op(kernel.op), kernel); }

  using Views = std::map<std::string, View, std::less<>>;
  // Our kernel of the op, as one that takes its launch to be what `edit` makes of it.
  Kernel taking(const std::string& name, const std::function<void(Plan&, Views&)>& edit) const {
    Kernel kernel = bench_.kernel(name);
    kernel.host = [ours = kernel.host, edit](const Launch& launch) {
      Plan plan = launch.plan;
      Views views = launch.tensors;
      edit(plan, views);
      return ours({plan, launch.rank, views, launch.threads, launch.stream, launch.arena});
    };
    return kernel;
  }
  static void pack_indexer(Plan& plan) {
    for (TensorPlan& tensor : plan.tensors)
      if (tensor.name == "indexer_cache")
        tensor.cache.block_stride = tensor.cache.kernel_block_size * tensor.cache.record_bytes;
  }
  // … which follows these options, whatever a case says.
  Kernel following(const std::string& name, const std::map<std::string, std::string>& options) const {
    return taking(name, [options](Plan& plan, Views&) {
      for (const auto& [option, value] : options) plan.value.contract.at(option) = value;
    });
  }

  static const ProbedOption& option(const Probe& probe, const std::string& name) {
    for (const ProbedOption& each : probe.options)
      if (each.name == name) return each;
    throw std::invalid_argument("no option " + name);
  }
  static std::vector<std::string> required(const Probe& probe) {
    std::vector<std::string> texts;
    for (const ProbedRequirement& each : probe.requirements) texts.push_back(each.requirement.that.text());
    return texts;
  }

  const TestBench bench_;
};

TEST_F(ProbeTest, OurKernelFollowsEveryValueAndRequiresNothing) {
  const Probe found = probe_of(bench_.kernel("fused_norm_rope"));
  EXPECT_TRUE(found.fits());
  EXPECT_THAT(required(found), IsEmpty());
  EXPECT_EQ(found.passed, found.cases);
  EXPECT_GT(found.cases, 60);
  for (const ProbedOption& each : found.options) {
    EXPECT_EQ(each.followed.size() + each.alike.size(), op("fused_norm_rope").option(each.name)->values.size()) << each.name;
    for (const ProbedValue& value : each.values) EXPECT_EQ(value.failed, 0) << each.name << " " << value.value;
  }
  EXPECT_THAT(option(found, "tile_scale").followed, ElementsAre("fp32_div", "fp32_mul", "pow2"));
  EXPECT_THAT(option(found, "k_outputs").followed, ElementsAre("separate", "in_place"));
  EXPECT_THAT(option(found, "nan").followed, ElementsAre("0x7F", "clamp"));
}

TEST_F(ProbeTest, ThePowerOfTwoRuleIsFoundAndIsAPreset) {
  const Kernel kernel = following("fused_norm_rope", {{"tile_scale", "pow2"}, {"norm_round", "none"}});
  const Probe found = probe_of(kernel);
  EXPECT_TRUE(found.fits());
  const ProbedOption& tile_scale = option(found, "tile_scale");
  EXPECT_THAT(tile_scale.followed, ElementsAre("pow2"));
  ASSERT_EQ(tile_scale.values.size(), 3U);
  EXPECT_GT(tile_scale.values[0].failed, 0);
  ASSERT_TRUE(tile_scale.values[0].first);
  EXPECT_EQ(tile_scale.values[0].first->verdict.violations.front().buffer, "mla_cache");
  EXPECT_EQ(tile_scale.values[0].first->value.option("tile_scale"), "fp32_div");
  EXPECT_EQ(tile_scale.values[2].failed, 0);
  EXPECT_GT(tile_scale.values[2].passed, 0);
  EXPECT_THAT(option(found, "norm_round").followed, ElementsAre("none"));
}

// Rounding before the weight is seen in every output: nothing passes until it is found.
TEST_F(ProbeTest, TwoRulesAtOnceAreFound) {
  const Probe found =
      probe_of(following("fused_norm_rope", {{"tile_scale", "pow2"}, {"norm_round", "bf16"}, {"e4m3_overflow", "nan"}}));
  EXPECT_TRUE(found.fits());
  EXPECT_THAT(option(found, "tile_scale").followed, ElementsAre("pow2"));
  EXPECT_THAT(option(found, "norm_round").followed, ElementsAre("bf16"));
  EXPECT_THAT(option(found, "e4m3_overflow").followed, ElementsAre("nan"));
  const Options proposed = proposal_of(found, op("fused_norm_rope")).options;
  EXPECT_EQ(proposed.at("norm_round"), std::vector<std::string>{"bf16"});
}

// A block's size by the bytes of its rows: right where nothing lies between two blocks.
TEST_F(ProbeTest, APackedIndexerIsARequirement) {
  const Probe found = probe_of(taking("fused_norm_rope", [](Plan& plan, Views&) { pack_indexer(plan); }));
  EXPECT_TRUE(found.fits());
  EXPECT_THAT(required(found), ElementsAre("!indexer.present || indexer.block_stride_padding == 0"));
  EXPECT_GT(found.left_out, 0);
  EXPECT_GT(found.requirements.front().mended, 0);
  EXPECT_EQ(found.requirements.front().first.verdict.status, Status::fail);
}

// All that the preset says, and no more: it is proposed by its name.
TEST_F(ProbeTest, AnOldGenerationIsProposedAsItsPreset) {
  // It knows one slot map, and puts K where it came from.
  std::vector<std::int64_t> unowned;
  const Kernel kernel = taking("fused_norm_rope", [this, &unowned](Plan& plan, Views& views) {
    // But for positions past the rope tables: read there, this process would end.
    for (const Option& each : op("fused_norm_rope").contract)
      if (each.name != "padding_positions") plan.value.contract.at(each.name) = each.values.front();
    // By the other cache's map rows may lie past the end of this one: none is written, which shows as well.
    const auto indexer = plan.value.geometry.caches.find("indexer");
    unowned.assign(static_cast<std::size_t>(plan.tokens), -1);
    if (indexer != plan.value.geometry.caches.end() && indexer->second.slot_mapping != "same" &&
        views.contains("index_slot_mapping"))
      views.at("index_slot_mapping").data = unowned.data();
    if (views.contains("kv_c_out")) views.at("kv_c_out") = views.at("kv_c");
    if (views.contains("k_pe_out")) views.at("k_pe_out") = views.at("k_pe");
    pack_indexer(plan);
  });
  const Probe found = probe_of(kernel);
  EXPECT_TRUE(found.fits());
  EXPECT_THAT(option(found, "k_outputs").followed, ElementsAre("in_place"));
  EXPECT_EQ(found.preset, "vllm_in_place") << testing::PrintToString(required(found));
  const Declaration proposed = proposal_of(found, op("fused_norm_rope"));
  EXPECT_EQ(proposed.preset, "vllm_in_place");
  EXPECT_THAT(proposed.requirements, IsEmpty());
}

TEST_F(ProbeTest, DenseRowsAndALayoutAreRequirements) {
  const Probe found = probe_of(taking("fused_norm_rope", [](Plan& plan, Views& views) {
    views.at("kv_c").strides.front() = plan.tensor("kv_c").columns();
    // All records of a block lie on one another.
    for (TensorPlan& tensor : plan.tensors)
      if (tensor.name == "mla_cache" && plan.value.choice("mla_layout") == "fp8_ds_mla") tensor.cache.record_bytes = 0;
  }));
  EXPECT_TRUE(found.fits());
  EXPECT_THAT(required(found),
              testing::UnorderedElementsAre("kv_c.dense", "!mla.present || !mla.mapped || mla_layout != 'fp8_ds_mla'"));
}

// What is wrong for some slots, tokens or values is not what a kernel may require.
TEST_F(ProbeTest, AWrongKernelFitsNothing) {
  std::vector<std::string> faults{"k_gated", "eps_of_q"};
  // Each takes ten seconds and more: harness/nightly laws has them all.
  if (std::getenv("DCPCHECK_SWEEP") != nullptr) faults.insert(faults.end(), {"cache_unguarded", "position_one_too_low"});
  for (const std::string& fault : faults) {
    const Probe found = probe_of(bench_.kernel("fused_norm_rope", fault));
    EXPECT_FALSE(found.fits()) << fault << " " << testing::PrintToString(required(found));
    EXPECT_FALSE(found.unexplained.empty()) << fault;
    EXPECT_LE(found.unexplained.size(), 3U);
  }
}

TEST_F(ProbeTest, TheSameComesOutTwice) {
  const Kernel kernel = following("fused_eh_norm", {{"norm_round", "bf16"}});
  const Probe a = probe_of(kernel), b = probe_of(kernel);
  EXPECT_TRUE(a.fits());
  EXPECT_EQ(a.cases, b.cases);
  EXPECT_EQ(a.runs, b.runs);
  EXPECT_EQ(a.passed, b.passed);
  EXPECT_EQ(proposal_of(a, op("fused_eh_norm")).options, proposal_of(b, op("fused_eh_norm")).options);
  EXPECT_THAT(option(a, "norm_round").followed, ElementsAre("bf16"));
}

TEST_F(ProbeTest, WhatItDeclaresIsNotLookedAt) {
  Kernel kernel = following("fused_eh_norm", {{"norm_round", "bf16"}});
  kernel.declared.emplace();
  kernel.declared->options["norm_round"] = {"none"};
  EXPECT_THAT(option(probe_of(kernel), "norm_round").followed, ElementsAre("bf16"));
}

// Every op can be asked, and each question is one that a declaration may name.
TEST_F(ProbeTest, QuestionsAreRequirements) {
  for (const auto& [name, op] : bench_.ops) {
    Declaration declaration;
    for (const Question& question : questions_of(op)) {
      declaration.requirements.push_back(question.that);
      EXPECT_FALSE(question.mends.empty()) << question.that.that.text();
    }
    EXPECT_NO_THROW(check_declaration(declaration, op, name));
  }
}

}  // namespace
}  // namespace dcpcheck
