// fused_eh_norm as a kernel under test.
#pragma once

#include <string>

#include "harness/adapters/builtin/make.hpp"
#include "kernels/fused_eh_norm/fused_eh_norm.cuh"

namespace dcpcheck::builtin {

struct fused_eh_norm {
  using Args = kernels::fused_eh_norm::Args;

  static Args args(const Launch& launch);

  template <class Decisions>
  static std::string launch_host(const Args& args, int threads) {
    return kernels::fused_eh_norm::launch_host<Decisions>(args, threads);
  }
};

}  // namespace dcpcheck::builtin
