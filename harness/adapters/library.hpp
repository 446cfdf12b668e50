// A kernel of somebody else's, from a shared library that speaks dcpcheck_kernel.h.
#pragma once

#include <string>
#include <string_view>

#include "harness/core/op.hpp"
#include "harness/exec/kernel.hpp"

namespace dcpcheck {

// What a spec of such a kernel begins with.
inline constexpr std::string_view kLibrary = "lib:";

// The kernel in the shared library `spec` names ("lib:<file.so>"), which stays loaded as long as a copy of the kernel lives. It
// runs in this process. Throws InputError where the file is no such library or declares what its op does not have.
Kernel load_library(const std::string& spec, const Ops& ops);

}  // namespace dcpcheck
