#include "harness/adapters/cubin.hpp"

#include <memory>

#include "harness/adapters/cubin_launch.hpp"
#include "harness/adapters/manifest.hpp"
#include "harness/core/error.hpp"

namespace dcpcheck {

Kernel load_cubin(const std::string& spec, const Ops& ops) {
  if (spec.size() == kCubin.size()) throw InputError("--kernel " + spec + " names no file");
  const auto manifest = std::make_shared<const Manifest>(read_manifest(spec.substr(kCubin.size()), ops, spec));
  Kernel kernel;
  kernel.name = spec;
  kernel.op = manifest->op->name;
  kernel.declared = manifest->declared;
  kernel.doc = manifest->declared.doc;
#ifdef DCPCHECK_HAVE_CUDA
  kernel.cuda = cubin_launcher(manifest, spec);
#endif
  return kernel;
}

}  // namespace dcpcheck
