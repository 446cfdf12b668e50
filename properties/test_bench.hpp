// For tests: the ops, references and kernels that come with dcpcheck, on the host.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "harness/adapters/builtin.hpp"
#include "harness/exec/generate.hpp"
#include "harness/exec/workbench.hpp"
#include "properties/generators.hpp"
#include "properties/test_ops.hpp"

namespace dcpcheck {

struct TestBench {
  static constexpr std::int64_t kMemory = kTestMemory;

  TestBench() {
    for (const auto& [name, builtin] : builtin_ops()) {
      ops.emplace(name, builtin.op);
      references.emplace(name, builtin.reference);
      if (builtin.op.pipeline.empty()) continue;
      Kernel whole;
      whole.name = "builtin:" + name;
      whole.op = name;
      kernels.push_back(whole);
    }
  }
  TestBench(const TestBench&) = delete;
  TestBench& operator=(const TestBench&) = delete;

  const Kernel& kernel(const std::string& op, const std::string& fault = "") const {
    const auto found =
        std::find_if(kernels.begin(), kernels.end(), [&](const Kernel& k) { return k.op == op && k.fault == fault; });
    if (found == kernels.end()) throw std::invalid_argument("no kernel " + op + "@" + fault);
    return *found;
  }

  // Free cases; of a pipeline, only cases that its parts can be launched with.
  GenerateOptions generate_options(const Op& op) const {
    GenerateOptions options = without_rows();
    if (!op.pipeline.empty()) {
      options.check = [this, &op](const Case& value) { check_generate(ops, op, value, kMemory, "case"); };
    }
    return options;
  }

  Ops ops;
  std::map<std::string, Reference, std::less<>> references;
  std::vector<Kernel> kernels = builtin_kernels();
  const std::unique_ptr<Backend> backend = make_host_backend();
  const Workbench bench{&ops, &references, &kernels, backend.get(), 1, kMemory, nullptr};
};

}  // namespace dcpcheck
