// fused_q as a kernel under test.
#pragma once

#include <string>

#include "harness/adapters/builtin/make.hpp"
#include "kernels/fused_q/fused_q.cuh"

namespace dcpcheck::builtin {

struct fused_q {
  using Args = kernels::fused_q::Args;

  static Args args(const Launch& launch);

  template <class Decisions>
  static std::string launch_host(const Args& args, int threads) {
    return kernels::fused_q::launch_host<Decisions>(args, threads);
  }
};

}  // namespace dcpcheck::builtin
