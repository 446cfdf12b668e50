#include "harness/exec/workbench.hpp"

#include <algorithm>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

// What a pipeline runs: `kernel` in the place of its op, where it is of one, and the fixed kernels.
Parts parts_of(const Workbench& bench, const Op& op, const Kernel& kernel) {
  Parts parts;
  for (const std::string& name : op.pipeline) {
    const Kernel* chosen = kernel.op == name ? &kernel : fixed_kernel(*bench.kernels, name);
    if (chosen == nullptr) throw HarnessError("there is no kernel for " + name + ", which " + op.name + " is made of");
    parts.emplace(name, Part{&bench.ops->at(name), &bench.references->at(name), chosen});
  }
  return parts;
}

}  // namespace

const Kernel* fixed_kernel(const std::vector<Kernel>& kernels, const std::string& op) {
  const auto found = std::find_if(kernels.begin(), kernels.end(),
                                  [&](const Kernel& kernel) { return kernel.op == op && kernel.fault.empty(); });
  return found == kernels.end() ? nullptr : &*found;
}

bool runs_on(const Op& op, const Kernel& kernel) {
  return kernel.op == op.name || std::find(op.pipeline.begin(), op.pipeline.end(), kernel.op) != op.pipeline.end();
}

bool can_run(const Workbench& bench, const Op& op, const Kernel& kernel) {
  if (op.pipeline.empty()) return bench.backend->can_run(kernel);
  const Parts parts = parts_of(bench, op, kernel);
  return std::all_of(parts.begin(), parts.end(), [&](const auto& part) { return bench.backend->can_run(*part.second.kernel); });
}

CaseResult judge(const Workbench& bench, Prepared& prepared, const Kernel& kernel, const RunOptions& options,
                 ReferenceMemory& memory) {
  const Op& op = *prepared.plan.op;
  if (op.pipeline.empty()) return run_case(prepared, kernel, *bench.backend, options);
  return run_generate(prepared, parts_of(bench, op, kernel), *bench.backend, options, memory);
}

}  // namespace dcpcheck
