// Host against CUDA, bit for bit, over the stored cases. Needs a GPU; DCPCHECK_CORPORA names the corpora where the
// program does not run where it was built.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "harness/adapters/builtin.hpp"
#include "harness/adapters/selftest.hpp"
#include "harness/core/error.hpp"
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
    for (const auto& entry : std::filesystem::directory_iterator(corpora() / folder)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  ASSERT_GE(files.size(), 42U);
  for (const auto& file : files) {
    const CaseFile stored = load_case_file(ops, file.string());
    const BuiltinOp& op = builtins.at(stored.value.op);
    Prepared prepared = prepare(op.op, op.reference, stored.value, std::int64_t{4} << 30, 4);
    for (const Kernel& kernel : builtin_kernels()) {
      if (kernel.op != stored.value.op) continue;
      RunOptions options;
      options.threads = 4;
      const CaseResult on_host = run_case(prepared, kernel, *host, options);
      const CaseResult on_cuda = run_case(prepared, kernel, *cuda, options);
      EXPECT_EQ(on_host.outputs, on_cuda.outputs) << file << " " << kernel.name;
      EXPECT_EQ(on_host.verdict.status, on_cuda.verdict.status) << file << " " << kernel.name;
      EXPECT_EQ(on_host.verdict.reason, on_cuda.verdict.reason) << file << " " << kernel.name;
      if (kernel.fault.empty()) {
        EXPECT_EQ(on_cuda.verdict.status, Status::pass) << file << " " << kernel.name;
      }
    }
  }
}

}  // namespace
}  // namespace dcpcheck
