// Host against CUDA, bit for bit, over the stored cases. Needs a GPU; DCPCHECK_CORPORA names the corpora where the
// program does not run where it was built.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "harness/adapters/builtin.hpp"
#include "harness/adapters/selftest.hpp"
#include "harness/core/error.hpp"
#include "harness/exec/generate.hpp"
#include "harness/exec/nccl_library.hpp"
#include "harness/exec/reference_memory.hpp"
#include "harness/exec/runner.hpp"

namespace dcpcheck {
namespace {

std::filesystem::path corpora() {
  const char* elsewhere = std::getenv("DCPCHECK_CORPORA");
  return elsewhere ? std::filesystem::path(elsewhere) : std::filesystem::path(DCPCHECK_SOURCE_DIR) / "corpora";
}

TEST(CudaBackend, IsRefusedWithAReasonWhereThereIsNone) {
  std::string why;
  if (cuda_available(&why)) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_FALSE(why.empty());
  EXPECT_THROW(make_cuda_backend(), InputError);
}

TEST(CudaBackend, GivesTheHostsBitsOnEveryStoredCase) {
  std::string why;
  if (!cuda_available(&why)) GTEST_SKIP() << why;
  const auto builtins = builtin_ops();
  Ops ops;
  for (const auto& [name, op] : builtins) ops.emplace(name, op.op);
  const auto host = make_host_backend();
  const auto cuda = make_cuda_backend();
  EXPECT_EQ(self_test(*cuda, builtins, builtin_kernels()), "");
  std::vector<std::filesystem::path> files;
  for (const char* folder : {"edge", "issue-54907"}) {
    for (const auto& entry : std::filesystem::directory_iterator(corpora() / folder))
      if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  ASSERT_GE(files.size(), 42U);
  for (const auto& file : files) {
    const CaseFile stored = load_case_file(ops, file.string());
    const BuiltinOp& op = builtins.at(stored.value.op);
    if (!op.op.pipeline.empty()) continue;  // below
    Prepared prepared = prepare(op.op, op.reference, stored.value, std::int64_t{4} << 30, 4);
    for (const Kernel& kernel : builtin_kernels()) {
      if (kernel.op != stored.value.op) continue;
      RunOptions options;
      options.threads = 4;
      const CaseResult on_host = run_case(prepared, kernel, *host, options);
      const CaseResult on_cuda = run_case(prepared, kernel, *cuda, options);
      if (!kernel.blocks_collide) {
        EXPECT_EQ(on_host.outputs, on_cuda.outputs) << file << " " << kernel.name;
      }
      EXPECT_EQ(on_host.verdict.status, on_cuda.verdict.status) << file << " " << kernel.name;
      EXPECT_EQ(on_host.verdict.reason, on_cuda.verdict.reason) << file << " " << kernel.name;
      if (kernel.fault.empty()) {
        EXPECT_EQ(on_cuda.verdict.status, Status::pass) << file << " " << kernel.name;
      }
    }
  }
}

void expect_the_hosts_bits_on_a_pipeline(const Spread& spread) {
  const auto builtins = builtin_ops();
  Ops ops;
  for (const auto& [name, op] : builtins) ops.emplace(name, op.op);
  const std::vector<Kernel> kernels = builtin_kernels();
  const auto host = make_host_backend();
  const auto cuda = make_cuda_backend(spread);
  for (const char* name : {"tokens-512-dcp1.json", "tokens-512-dcp4.json"}) {
    const CaseFile stored = load_case_file(ops, (corpora() / "issue-54907" / name).string());
    const Prepared prepared = prepare(ops.at("generate"), {}, stored.value, std::int64_t{4} << 30, 4);
    for (const char* fault : {"", "k_gated", "q_gated", "cache_unguarded"}) {
      Parts parts;
      for (const Kernel& kernel : kernels) {
        if (kernel.fault.empty() || (kernel.op == "fused_norm_rope" && kernel.fault == fault))
          parts[kernel.op] = Part{&ops.at(kernel.op), &builtins.at(kernel.op).reference, &kernel};
      }
      RunOptions options;
      options.threads = 4;
      ReferenceMemory memory;
      const CaseResult on_host = run_generate(prepared, parts, *host, options, memory);
      const CaseResult on_cuda = run_generate(prepared, parts, *cuda, options, memory);
      EXPECT_EQ(on_host.outputs, on_cuda.outputs) << name << " " << fault;
      EXPECT_EQ(on_host.all_digest, on_cuda.all_digest) << name << " " << fault;
      EXPECT_EQ(on_host.tokens->ids, on_cuda.tokens->ids) << name << " " << fault;
      EXPECT_EQ(on_host.tokens->poison_b_ids, on_cuda.tokens->poison_b_ids) << name << " " << fault;
      EXPECT_EQ(on_host.verdict.status, on_cuda.verdict.status) << name << " " << fault;
    }
  }
}

// All launches of a pipeline, and the tokens; what a fault leaves unwritten, too.
TEST(CudaBackend, GivesTheHostsBitsOnAPipeline) {
  std::string why;
  if (!cuda_available(&why)) GTEST_SKIP() << why;
  expect_the_hosts_bits_on_a_pipeline({});
}

TEST(CudaBackend, GivesTheSameBitsOnSeatsOfOneDevice) {
  std::string why;
  if (!cuda_available(&why)) GTEST_SKIP() << why;
  expect_the_hosts_bits_on_a_pipeline({{0, 0, 0, 0}, false, Spread::Transport::automatic});
  EXPECT_THROW(make_cuda_backend({{0, 0}, false, Spread::Transport::nccl}), InputError);
  EXPECT_THROW(make_cuda_backend({{1023}, false, Spread::Transport::host}), InputError);
}

TEST(CudaBackend, GivesTheSameBitsOnSeveralDevices) {
  std::string why;
  if (!cuda_available(&why)) GTEST_SKIP() << why;
  if (make_cuda_backend({{}, true, Spread::Transport::host})->devices().size() < 2) GTEST_SKIP() << "there is but one GPU";
  expect_the_hosts_bits_on_a_pipeline({{}, true, Spread::Transport::host});
  if (NcclLibrary::find(&why) == nullptr) GTEST_SKIP() << why;
  expect_the_hosts_bits_on_a_pipeline({{}, true, Spread::Transport::nccl});
}

}  // namespace
}  // namespace dcpcheck
