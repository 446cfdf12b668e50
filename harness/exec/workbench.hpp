// All that a case is judged with: the ops, their references, the kernels that there are, and where they run.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/exec/generate.hpp"
#include "harness/exec/reference_memory.hpp"
#include "harness/exec/runner.hpp"

namespace dcpcheck {

// Everything that it points to must outlive it.
struct Workbench {
  const Ops* ops = nullptr;
  const std::map<std::string, Reference, std::less<>>* references = nullptr;  // by op
  const std::vector<Kernel>* kernels = nullptr;
  Backend* backend = nullptr;
  int threads = 1;
  std::int64_t memory = 0;                        // bytes that a case may take
  const std::atomic<int>* interrupted = nullptr;  // see RunOptions
};

// The op's kernel as it should be; nullptr where there is none.
const Kernel* fixed_kernel(const std::vector<Kernel>& kernels, const std::string& op);

// Whether a case of `op` runs on the kernel: it is one of the op, or of one of the ops that `op` is made of, whose place it
// then takes.
bool runs_on(const Op& op, const Kernel& kernel);

// Whether the bench's backend can run `kernel` on cases of `op`; of a pipeline, every part of it.
bool can_run(const Workbench& bench, const Op& op, const Kernel& kernel);

// Runs and judges a case of any op: a launch, or a pipeline with `kernel` in the place of its op. Throws as run_case does.
CaseResult judge(const Workbench& bench, Prepared& prepared, const Kernel& kernel, const RunOptions& options,
                 ReferenceMemory& memory);

}  // namespace dcpcheck
