// Launches what a manifest describes, through the CUDA driver. In builds with CUDA.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "harness/adapters/manifest.hpp"
#include "harness/exec/kernel.hpp"

namespace dcpcheck {

// Kernel::cuda of the manifest's kernel. Where there is a GPU the modules are loaded into its primary context now, and stay
// until the last copy of what is returned is gone. Throws InputError, its sentence starting with `source`, where the GPU
// cannot take one.
std::function<LaunchError(const Launch&)> cubin_launcher(std::shared_ptr<const Manifest> manifest, const std::string& source);

}  // namespace dcpcheck
