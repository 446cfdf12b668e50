// The kernels that come with dcpcheck: kernels/<op>, as it should be ("builtin:<op>") and with each of its faults
// ("builtin:<op>@<fault>"). The list is made by the build from kernels/<op>/faults/*.hpp.
#pragma once

#include <vector>

#include "harness/exec/kernel.hpp"

namespace dcpcheck {

// Sorted by op, the fixed kernel first, then the faults by name.
std::vector<Kernel> builtin_kernels();

}  // namespace dcpcheck
