// Generated cases are ones that a right kernel passes: their inputs lie within the contract.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "harness/core/parallel.hpp"
#include "properties/generators.hpp"
#include "properties/test_bench.hpp"

namespace dcpcheck {
namespace {

class GeneratedCases : public testing::TestWithParam<std::string> {
 protected:
  const TestBench bench_;
};

// How many cases of an op: as many as DCPCHECK_GENERATED says, of a pipeline a hundredth.
std::uint64_t cases_of(const Op& op, std::uint64_t unless_said) {
  const char* said = std::getenv("DCPCHECK_GENERATED");
  const std::uint64_t cases = said == nullptr ? unless_said : std::strtoull(said, nullptr, 10);
  return op.pipeline.empty() ? cases : (cases + 99) / 100;
}

// Judges `cases` generated cases of the op's fixed kernel on the bench's backend.
void pass(const TestBench& test, const Workbench& bench, const Op& op, std::uint64_t cases) {
  const Kernel& kernel = test.kernel(op.name);
  const Generator generator(op, test.generate_options(op));
  std::atomic<std::int64_t> compared{0};
  parallel_parts(static_cast<std::int64_t>(cases), static_cast<int>(std::thread::hardware_concurrency()), 50,
                 [&](std::int64_t begin, std::int64_t end) {
                   ReferenceMemory memory;
                   for (std::int64_t index = begin; index < end; ++index) {
                     const Case value = generator(54907, static_cast<std::uint64_t>(index) * 7);
                     Prepared prepared = prepare(op, test.references.at(op.name), value, TestBench::kMemory, 1);
                     const CaseResult result = judge(bench, prepared, kernel, {}, memory);
                     compared += result.verdict.compared;
                     EXPECT_EQ(result.verdict.status, Status::pass)
                         << name_of(result.verdict.reason) << " " << result.verdict.detail << "\n"
                         << json::dump(case_to_json(op, value));
                     if (testing::Test::HasFailure()) return;
                   }
                 });
  EXPECT_GT(compared.load(), static_cast<std::int64_t>(cases));
}

TEST_P(GeneratedCases, PassOnTheFixedKernel) {
  const Op& op = bench_.ops.at(GetParam());
  pass(bench_, bench_.bench, op, cases_of(op, kSanitized ? 10 : 100));
}

TEST_P(GeneratedCases, PassOnTheFixedKernelOnCuda) {
  std::string why;
  if (!cuda_available(&why)) GTEST_SKIP() << why;
  const Op& op = bench_.ops.at(GetParam());
  const std::unique_ptr<Backend> cuda = make_cuda_backend();
  Workbench on_cuda = bench_.bench;
  on_cuda.backend = cuda.get();
  if (!can_run(on_cuda, op, bench_.kernel(op.name))) GTEST_SKIP() << "this build has no CUDA kernel of " << op.name;
  pass(bench_, on_cuda, op, cases_of(op, 100));
}

// What makes a golden of one machine hold on another.
TEST_P(GeneratedCases, HaveTheSameDigestsOnCuda) {
  std::string why;
  if (!cuda_available(&why)) GTEST_SKIP() << why;
  const Op& op = bench_.ops.at(GetParam());
  const Kernel& kernel = bench_.kernel(op.name);
  const std::unique_ptr<Backend> cuda = make_cuda_backend();
  Workbench on_cuda = bench_.bench;
  on_cuda.backend = cuda.get();
  if (!can_run(on_cuda, op, kernel)) GTEST_SKIP() << "this build has no CUDA kernel of " << op.name;
  const Generator generator(op, bench_.generate_options(op));
  const auto cases = static_cast<std::int64_t>(cases_of(op, 100));
  std::atomic<std::int64_t> same{0};
  parallel_parts(cases, static_cast<int>(std::thread::hardware_concurrency()), 50, [&](std::int64_t begin, std::int64_t end) {
    ReferenceMemory memory;
    for (std::int64_t index = begin; index < end && !HasFailure(); ++index) {
      const Case value = generator(54908, static_cast<std::uint64_t>(index));
      Prepared prepared = prepare(op, bench_.references.at(op.name), value, TestBench::kMemory, 1);
      const CaseResult host = judge(bench_.bench, prepared, kernel, {}, memory);
      const CaseResult device = judge(on_cuda, prepared, kernel, {}, memory);
      const std::string text = json::dump(case_to_json(op, value));
      EXPECT_EQ(device.verdict.status, Status::pass) << device.verdict.detail << "\n" << text;
      EXPECT_EQ(host.outputs, device.outputs) << text;
      ++same;
    }
  });
  EXPECT_EQ(same.load(), cases);
}

INSTANTIATE_TEST_SUITE_P(Ops, GeneratedCases, testing::ValuesIn(builtin_op_names()),
                         [](const testing::TestParamInfo<std::string>& one) { return one.param; });

}  // namespace
}  // namespace dcpcheck
