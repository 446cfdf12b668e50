// merge_chunks as a kernel under test.
#pragma once

#include <string>

#include "harness/adapters/builtin/make.hpp"
#include "kernels/merge_chunks/merge_chunks.cuh"

namespace dcpcheck::builtin {

struct merge_chunks {
  using Args = kernels::merge_chunks::Args;

  static Args args(const Launch& launch);

  template <class Decisions>
  static std::string launch_host(const Args& args, int threads) {
    return kernels::merge_chunks::launch_host<Decisions>(args, threads);
  }
};

}  // namespace dcpcheck::builtin
