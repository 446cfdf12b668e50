#include "harness/adapters/foreign_reference.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include "harness/core/error.hpp"
#include "properties/test_bench.hpp"

namespace dcpcheck {
namespace {

using testing::HasSubstr;

template <class T>
T* tensor(const Launch& launch, const std::string& name) {
  const auto found = launch.tensors.find(name);
  return found == launch.tensors.end() ? nullptr : reinterpret_cast<T*>(found->second.data);
}

// Tells by the ABI what a reference that comes with dcpcheck expects.
Kernel telling(const Op& op, const Reference& reference) {
  Kernel kernel;
  kernel.name = "a test's reference";
  kernel.op = op.name;
  kernel.host = [&op, &reference](const Launch& launch) -> LaunchError {
    const Plan plan = make_plan(op, launch.plan.value, TestBench::kMemory);
    const Expected expected = reference(plan, make_inputs(plan), launch.rank, {});
    for (const auto& [name, told] : expected) {
      if (auto* const exact = tensor<std::byte>(launch, name + ".exact"))
        std::copy(told.codes.begin(), told.codes.end(), exact);
      if (auto* const value = tensor<double>(launch, name + ".value")) {
        std::copy(told.value.begin(), told.value.end(), value);
        std::copy(told.error.begin(), told.error.end(), tensor<double>(launch, name + ".error"));
      }
    }
    return {};
  };
  return kernel;
}

class ForeignReference : public testing::TestWithParam<std::string> {
 protected:
  const TestBench bench_;
};

// Outputs told exactly and by value, of ops whose contract leaves no two intervals for an element: each case comes to the
// verdict and the digests that it had.
TEST_P(ForeignReference, ComesToTheSameVerdictsAsOneThatIsBuiltIn) {
  const Op& op = bench_.ops.at(GetParam());
  const Generator generator(op, bench_.generate_options(op));
  const Reference told = reference_of(telling(op, bench_.references.at(op.name)), op);
  std::int64_t compared = 0;
  for (std::uint64_t index = 0; index < (kSanitized ? 5 : 40); ++index) {
    const Case value = generator(7, index);
    Prepared own = prepare(op, bench_.references.at(op.name), value, TestBench::kMemory, 1);
    Prepared foreign = prepare(op, told, value, TestBench::kMemory, 1);
    ReferenceMemory memory, foreign_memory;
    for (const Kernel& kernel : bench_.kernels) {
      if (kernel.op != op.name) continue;
      const CaseResult by_own = judge(bench_.bench, own, kernel, {}, memory);
      const CaseResult by_foreign = judge(bench_.bench, foreign, kernel, {}, foreign_memory);
      EXPECT_EQ(by_foreign.verdict.status, by_own.verdict.status) << kernel.name << "\n" << json::dump(case_to_json(op, value));
      EXPECT_EQ(by_foreign.verdict.reason, by_own.verdict.reason);
      EXPECT_EQ(by_foreign.verdict.compared, by_own.verdict.compared);
      EXPECT_EQ(by_foreign.outputs, by_own.outputs);
      compared += by_foreign.verdict.compared;
    }
  }
  EXPECT_GT(compared, 1000);
}

INSTANTIATE_TEST_SUITE_P(Ops, ForeignReference, testing::Values("compute_slot_mapping", "merge_chunks"),
                         [](const testing::TestParamInfo<std::string>& one) { return one.param; });

// An op of one float output, of each way of telling.
Op small_op(const std::string& told) {
  return op_from_json(
      json::parse(R"({"schema": "dcpcheck.op/1", "name": "small", "version": 1, "geometry": ["batch"], "caches": [],
"reference": "lib:none.so", "params": {}, "require": [], "contract": {}, "tensors": [
{"name": "x", "role": "in", "dtype": "'bf16'", "shape": ["T", "2"], "values": "normal:1"},
{"name": "y", "role": "out", "dtype": "'bf16'", "shape": ["T", "2"], "rows": "live", "told": ")" +
                      told + R"("}]})",
                  "op"),
      "op");
}

using Tell = std::function<LaunchError(const Launch&)>;

// What the reference that `tell` makes says of y; the sentence where it throws.
std::string said_of(const Op& op, const Tell& tell, Expected& expected) {
  Case value = case_from_json({{"small", op}},
                              json::parse(R"({"op": "small", "geometry": {"batch": [{"uncached": 1}]}})", "case"), "case");
  const Plan plan = make_plan(op, value, TestBench::kMemory);
  Kernel kernel;
  kernel.name = "a test's";
  kernel.op = op.name;
  kernel.host = tell;
  try {
    expected = reference_of(kernel, op)(plan, make_inputs(plan), 0, {});
    return "";
  } catch (const HarnessError& error) {
    return error.what();
  }
}

Tell values(double value, double error) {
  return [=](const Launch& launch) -> LaunchError {
    for (int i = 0; i < 2; ++i) tensor<double>(launch, "y.value")[i] = value;
    for (int i = 0; i < 2; ++i) tensor<double>(launch, "y.error")[i] = i == 0 ? 0 : error;
    return {};
  };
}

Tell range(std::uint16_t low, std::uint16_t high) {
  return [=](const Launch& launch) -> LaunchError {
    for (int i = 0; i < 2; ++i) tensor<std::uint16_t>(launch, "y.low")[i] = low;
    for (int i = 0; i < 2; ++i) tensor<std::uint16_t>(launch, "y.high")[i] = high;
    return {};
  };
}

TEST(ForeignReferences, WhatCannotBeIsOneSentence) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Expected told;
  const Op by_value = small_op("value"), by_range = small_op("range");
  EXPECT_EQ(said_of(by_value, values(1, 0.5), told), "");
  EXPECT_EQ(told.at("y").error.at(1), 0.5);
  EXPECT_THAT(said_of(by_value, values(1, -1), told),
              HasSubstr("the reference of small tells of y, element [0, 1], an error that is negative"));
  EXPECT_THAT(said_of(by_value, values(1, nan), told), HasSubstr("an error that is no number"));
  EXPECT_THAT(said_of(
                  by_value, [](const Launch&) -> LaunchError { return {}; }, told),
              HasSubstr("no number"))
      << "a reference that tells nothing";
  EXPECT_THAT(said_of(
                  by_value, [](const Launch&) -> LaunchError { return {"no memory"}; }, told),
              HasSubstr("did not answer: no memory"));
  // 1.0 and 1.5; a NaN.
  EXPECT_EQ(said_of(by_range, range(0x3F80, 0x3FC0), told), "");
  EXPECT_EQ(told.at("y").value.at(0), 1.25);
  EXPECT_EQ(told.at("y").error.at(0), 0.25);
  EXPECT_THAT(said_of(by_range, range(0x3FC0, 0x3F80), told), HasSubstr("a low above its high"));
  EXPECT_THAT(said_of(by_range, range(0x3F80, 0x7FC0), told), HasSubstr("NaN"));
  EXPECT_THAT(said_of(by_range, range(0x3F80, 0x7F80), told), HasSubstr("infinite"));
}

TEST(ForeignReferences, OneOfAnotherOpOrForCudaAloneIsRefused) {
  const auto refusal = [](const Kernel& kernel) -> std::string {
    try {
      static_cast<void>(reference_of(kernel, small_op("value")));
    } catch (const InputError& error) {
      return error.what();
    }
    return "taken";
  };
  Kernel kernel;
  kernel.name = "lib:a.so";
  kernel.op = "small";
  kernel.cuda = [](const Launch&) -> LaunchError { return {}; };
  EXPECT_EQ(refusal(kernel),
            "lib:a.so: it is named as the reference of small, which must run on the host, but runs on CUDA alone");
  kernel.host = kernel.cuda;
  EXPECT_EQ(refusal(kernel), "taken");
  kernel.op = "fused_q";
  EXPECT_EQ(refusal(kernel), "lib:a.so: it is named as the reference of small, but is a kernel of fused_q");
}

// Each op that is printed is the op that it was: read back, it has the same ids, verdicts and digests.
TEST(PrintedOps, ReadBackJudgeAlike) {
  const TestBench bench;
  std::int64_t cases = 0;
  for (const auto& [name, op] : bench.ops) {
    if (!op.pipeline.empty()) continue;
    const Op back = op_from_json(json::parse(json::dump(op.source, 2), "printed"), "printed");
    const Generator generator(op, bench.generate_options(op));
    const Kernel& kernel = bench.kernel(name);
    for (std::uint64_t index = 0; index < (kSanitized ? 5 : 56); ++index, ++cases) {
      const Case value = generator(11, index);
      EXPECT_EQ(case_id(op, value), case_id(back, value));
      Prepared own = prepare(op, bench.references.at(name), value, TestBench::kMemory, 1);
      Prepared read = prepare(back, bench.references.at(name), value, TestBench::kMemory, 1);
      ReferenceMemory memory, other;
      const CaseResult by_own = judge(bench.bench, own, kernel, {}, memory);
      const CaseResult by_read = judge(bench.bench, read, kernel, {}, other);
      EXPECT_EQ(by_read.verdict.status, by_own.verdict.status);
      EXPECT_EQ(by_read.outputs, by_own.outputs);
    }
  }
  EXPECT_GE(cases, kSanitized ? 45 : 500);
}

}  // namespace
}  // namespace dcpcheck
