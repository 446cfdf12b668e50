// Portable digests, and where what a kernel leaves parts from a digest: right kernels in other bits, and wrong ones.
#include "harness/exec/portable.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "harness/adapters/builtin.hpp"
#include "harness/exec/divergence.hpp"
#include "harness/exec/runner.hpp"
#include "harness/oracle/code_spans.hpp"
#include "reference/builtin_ops.hpp"

namespace dcpcheck {
namespace {

using testing::ElementsAre;

constexpr const char* kNorm = R"({"op":"fused_norm_rope","seed":"0000000000000011",
  "geometry":{"batch":[{"cached":5,"uncached":8}],"padding":{"tokens":2},"max_batched_tokens":12,"tp":2,"dcp":{"world_size":2},
    "caches":{"mla":{"block_size":4},"indexer":{"block_size":4,"slot_mapping":"same"}}},
  "params":{"q_lora_rank":48,"index_topk":4,"index_k_out":true,"max_position":32,"mla_layout":"fp8_ds_mla"}})";

constexpr const char* kMerge = R"({"op":"merge_ranks","seed":"0000000000000011",
  "geometry":{"batch":[{"uncached":3}],"tp":2,"dcp":{"world_size":2}}})";

class PortableTest : public testing::Test {
 protected:
  PortableTest() {
    for (const auto& [name, op] : builtins_) ops_.emplace(name, op.op);
    for (const Kernel& kernel : builtin_kernels())
      if (kernel.fault.empty()) fixed_.emplace(kernel.op, kernel);
    options_.portable = true;
  }

  Prepared prepared(const char* text) const {
    const Case value = case_from_json(ops_, json::parse(text, "c"), "c");
    return prepare(ops_.at(value.op), builtins_.at(value.op).reference, value, std::int64_t{1} << 30, 1);
  }

  template <class Spoil>
  Kernel spoiled(const std::string& op, Spoil spoil) const {
    Kernel kernel = fixed_.at(op);
    const auto right = kernel.host;
    kernel.host = [right, spoil](const Launch& launch) {
      LaunchError refused = right(launch);
      spoil(launch);
      return refused;
    };
    return kernel;
  }

  CaseResult run(Prepared& of, const Kernel& kernel) { return run_case(of, kernel, *backend_, options_); }

  static std::byte* at(const Launch& launch, const char* name) {
    return static_cast<std::byte*>(launch.tensors.find(name)->second.data);
  }

  const std::map<std::string, BuiltinOp, std::less<>> builtins_ = builtin_ops();
  Ops ops_;
  std::map<std::string, Kernel> fixed_;
  std::unique_ptr<Backend> backend_ = make_host_backend();
  RunOptions options_;
};

// Every fp32 output at the far end of what is admissible.
TEST_F(PortableTest, OtherAdmissibleCodesAreTheSame) {
  Prepared merge = prepared(kMerge);
  const CaseResult ours = run(merge, fixed_.at("merge_ranks"));
  ASSERT_EQ(ours.verdict.status, Status::pass);
  Prepared other = prepared(kMerge);
  const CaseResult theirs = run(other, spoiled("merge_ranks", [&](const Launch& launch) {
                                  const Expected& expected = expected_on(other, launch.rank, fixed_.at("merge_ranks").lanes, 1);
                                  for (const char* name : {"out", "lse"}) {
                                    const TensorPlan& tensor = launch.plan.tensor(name);
                                    const Admissible& admissible = expected.at(name);
                                    for (std::int64_t i = 0; i < tensor.rows() * tensor.columns(); ++i) {
                                      const AdmissibleCodes codes =
                                          admissible_spans(admissible, i, comparison_of(launch.plan.value, tensor.dtype), 1);
                                      if (!codes.spans.empty())
                                        std::memcpy(at(launch, name) + 4 * i, &codes.spans.back().high, 4);
                                    }
                                  }
                                }));
  ASSERT_EQ(theirs.verdict.status, Status::pass);
  for (const char* name : {"rank0/out", "rank1/out", "rank0/lse", "rank1/lse"})
    EXPECT_NE(theirs.outputs.at(name), ours.outputs.at(name));
  EXPECT_EQ(theirs.portable, ours.portable);
  EXPECT_EQ(ours.portable.size(), ours.outputs.size());
}

// A stored scale of one ulp more is admissible, and codes are judged against it; what stands for both is of neither.
TEST_F(PortableTest, AnotherStoredScaleIsTheSame) {
  Prepared norm = prepared(kNorm);
  const CaseResult ours = run(norm, fixed_.at("fused_norm_rope"));
  ASSERT_EQ(ours.verdict.status, Status::pass);
  const auto moved = [&](float by) {
    return run(norm, spoiled("fused_norm_rope", [by](const Launch& launch) {
                 const CachePlan& cache = launch.plan.tensor("mla_cache").cache;
                 for (const FieldPlan& field : cache.fields) {
                   if (field.dtype != DType::fp32) continue;
                   for (std::int64_t slot = 0; slot < cache.slots(); ++slot) {
                     std::byte* const scale = at(launch, "mla_cache") + cache.address(slot, field);
                     float now = 0;
                     std::memcpy(&now, scale, 4);
                     if (!(now > 0 && now < 1)) continue;  // poison, or nobody's
                     now = std::nextafter(now, std::numeric_limits<float>::infinity()) * by;
                     std::memcpy(scale, &now, 4);
                     break;  // of one record
                   }
                 }
               }));
  };
  const CaseResult one_ulp = moved(1), twice = moved(2);
  ASSERT_NE(one_ulp.outputs, ours.outputs);
  ASSERT_NE(twice.outputs, ours.outputs);
  ASSERT_EQ(one_ulp.verdict.status, Status::pass);
  EXPECT_EQ(one_ulp.portable, ours.portable);
  EXPECT_EQ(twice.verdict.status, Status::fail);
  EXPECT_NE(twice.portable, ours.portable);
}

// One element wrong in one buffer of one rank: that digest changes, and no other.
TEST_F(PortableTest, AWrongElementIsNeverTheSame) {
  Prepared norm = prepared(kNorm);
  const CaseResult ours = run(norm, fixed_.at("fused_norm_rope"));
  for (const char* name : {"q_c_out", "kv_c_out", "k_pe_out", "index_k_out", "topk_indices"}) {
    const std::string hit = std::string("rank1/") + name;
    const CaseResult wrong = run(norm, spoiled("fused_norm_rope", [name](const Launch& launch) {
                                   if (launch.rank == 1) at(launch, name)[0] ^= std::byte{2};
                                 }));
    ASSERT_EQ(wrong.verdict.status, Status::fail) << name;
    for (const auto& [output, digest] : ours.portable)
      EXPECT_EQ(wrong.portable.at(output) != digest, output == hit) << name << " " << output;
  }
}

TEST_F(PortableTest, WhatIsUnwrittenIsNeverTheSame) {
  Prepared norm = prepared(kNorm);
  const CaseResult ours = run(norm, fixed_.at("fused_norm_rope"));
  Kernel idle = fixed_.at("fused_norm_rope");
  idle.host = [](const Launch&) { return LaunchError(); };
  const CaseResult nothing = run(norm, idle);
  for (const auto& [output, digest] : ours.portable) EXPECT_NE(nothing.portable.at(output), digest) << output;
}

TEST_F(PortableTest, IsTheDigestOfTheBitsWhereAllAreNearest) {
  Prepared norm = prepared(kNorm);
  const CaseResult ours = run(norm, fixed_.at("fused_norm_rope"));
  EXPECT_EQ(ours.portable.at("rank0/topk_indices"), ours.outputs.at("rank0/topk_indices"));
  EXPECT_EQ(ours.portable.at("rank0/q_c_out"), ours.outputs.at("rank0/q_c_out"));
}

TEST_F(PortableTest, IsMadeOnlyWhereItIsAskedFor) {
  options_.portable = false;
  Prepared norm = prepared(kNorm);
  EXPECT_TRUE(run(norm, fixed_.at("fused_norm_rope")).portable.empty());
}

TEST_F(PortableTest, TheFirstElementThatPartsIsFound) {
  Prepared norm = prepared(kNorm);
  const Kernel& right = fixed_.at("fused_norm_rope");
  const CaseResult ours = run(norm, right);
  const Kernel wrong = spoiled("fused_norm_rope", [](const Launch& launch) {
    const std::int64_t columns = launch.plan.tensor("q_c_out").columns();
    for (const std::int64_t element : {7 * columns, 3 * columns + 5, 3 * columns + 6})
      if (launch.rank == 1) at(launch, "q_c_out")[2 * element] ^= std::byte{1};
  });
  const auto parts = [&](std::int64_t rank, const char* buffer, const std::string& digest,
                         const std::vector<const Kernel*>& others) {
    return first_divergence(norm, rank, buffer, digest, others, wrong, *backend_, options_);
  };
  const std::string digest = ours.outputs.at("rank1/q_c_out");
  for (const auto& found : {parts(1, "q_c_out", digest, {}), parts(1, "q_c_out", digest, {&right})}) {
    ASSERT_TRUE(found);
    EXPECT_EQ(found->token, 3);
    EXPECT_THAT(found->index, ElementsAre(3, 5));
    EXPECT_EQ(found->count, 3);
    EXPECT_NE(found->was, found->is);
  }
  EXPECT_FALSE(parts(0, "q_c_out", ours.outputs.at("rank0/q_c_out"), {&right})) << "nothing differs there";
  EXPECT_FALSE(parts(1, "q_c_out", std::string(64, '0'), {&right})) << "nobody leaves that";
  EXPECT_FALSE(parts(1, "no_such_buffer", digest, {&right}));
}

// Where our own bits are not the reference's, the kernel that the digest is of has them.
TEST_F(PortableTest, TheBitsOfAnotherKernelAreFound) {
  Prepared merge = prepared(kMerge);
  const Kernel& right = fixed_.at("merge_ranks");
  const CaseResult ours = run(merge, right);
  const Kernel wrong = spoiled("merge_ranks", [](const Launch& launch) { at(launch, "lse")[0] ^= std::byte{1}; });
  const std::string digest = ours.outputs.at("rank0/lse");
  EXPECT_FALSE(first_divergence(merge, 0, "lse", digest, {}, wrong, *backend_, options_));
  const auto found = first_divergence(merge, 0, "lse", digest, {&right}, wrong, *backend_, options_);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->index, ElementsAre(0, 0));
  EXPECT_EQ(found->count, 1);
}

}  // namespace
}  // namespace dcpcheck
