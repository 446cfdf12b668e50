// A kernel of somebody else's, from a cubin or PTX file that a manifest describes.
#pragma once

#include <string>
#include <string_view>

#include "harness/core/op.hpp"
#include "harness/exec/kernel.hpp"

namespace dcpcheck {

// What a spec of such a kernel begins with.
inline constexpr std::string_view kCubin = "cubin:";

// The kernel of the manifest that `spec` names ("cubin:<manifest.json>"). Where there is a GPU its modules are loaded now, and
// stay as long as a copy of the kernel lives; where dcpcheck was built without CUDA the kernel can be shown, not run. Throws
// InputError where the manifest or a module of it is wrong.
Kernel load_cubin(const std::string& spec, const Ops& ops);

}  // namespace dcpcheck
