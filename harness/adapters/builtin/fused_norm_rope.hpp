// fused_norm_rope as a kernel under test.
#pragma once

#include <string>

#include "harness/adapters/builtin/make.hpp"
#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace dcpcheck::builtin {

struct fused_norm_rope {
  using Args = kernels::fused_norm_rope::Args;

  static Args args(const Launch& launch);

  template <class Decisions>
  static std::string launch_host(const Args& args, int threads) {
    return kernels::fused_norm_rope::launch_host<Decisions>(args, threads);
  }
};

}  // namespace dcpcheck::builtin
