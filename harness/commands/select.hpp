// Which kernels a case is run on.
#pragma once

#include <string>
#include <vector>

#include "harness/commands/cases.hpp"
#include "harness/commands/context.hpp"

namespace dcpcheck {

// The kernels that `specs` ("builtin:<op>[@fault]", "<op>[@fault]", "@fault": of every op that has it) name, sorted by op
// in the order given. Throws InputError where a spec names none.
std::vector<const Kernel*> select_kernels(const std::vector<Kernel>& kernels, const std::vector<std::string>& specs);

// The op's kernel as it should be; nullptr where there is none.
const Kernel* fixed_kernel(const std::vector<Kernel>& kernels, const std::string& op);

// For each op: the fixed kernel, then those whose fault is named in a case's `expect`, by first mention.
std::vector<const Kernel*> expected_kernels(const std::vector<Kernel>& kernels, const std::vector<NamedCase>& cases);

}  // namespace dcpcheck
