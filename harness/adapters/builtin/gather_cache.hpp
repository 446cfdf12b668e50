// gather_cache as a kernel under test.
#pragma once

#include <string>

#include "harness/adapters/builtin/make.hpp"
#include "kernels/gather_cache/gather_cache.cuh"

namespace dcpcheck::builtin {

struct gather_cache {
  using Args = kernels::gather_cache::Args;

  static Args args(const Launch& launch);

  template <class Decisions>
  static std::string launch_host(const Args& args, int threads) {
    return kernels::gather_cache::launch_host<Decisions>(args, threads);
  }
};

}  // namespace dcpcheck::builtin
