// reorg_context as a kernel under test.
#pragma once

#include <string>

#include "harness/adapters/builtin/make.hpp"
#include "kernels/reorg_context/reorg_context.cuh"

namespace dcpcheck::builtin {

struct reorg_context {
  using Args = kernels::reorg_context::Args;

  static Args args(const Launch& launch);

  template <class Decisions>
  static std::string launch_host(const Args& args, int threads) {
    return kernels::reorg_context::launch_host<Decisions>(args, threads);
  }
};

}  // namespace dcpcheck::builtin
