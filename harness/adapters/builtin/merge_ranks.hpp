// merge_ranks as a kernel under test.
#pragma once

#include <string>

#include "harness/adapters/builtin/make.hpp"
#include "kernels/merge_ranks/merge_ranks.cuh"

namespace dcpcheck::builtin {

struct merge_ranks {
  using Args = kernels::merge_ranks::Args;

  static Args args(const Launch& launch);

  template <class Decisions>
  static std::string launch_host(const Args& args, int threads) {
    return kernels::merge_ranks::launch_host<Decisions>(args, threads);
  }
};

}  // namespace dcpcheck::builtin
