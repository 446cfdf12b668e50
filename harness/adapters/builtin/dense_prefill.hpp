// dense_prefill as a kernel under test.
#pragma once

#include <string>

#include "harness/adapters/builtin/make.hpp"
#include "kernels/dense_prefill/dense_prefill.cuh"

namespace dcpcheck::builtin {

struct dense_prefill {
  using Args = kernels::dense_prefill::Args;
  // Of its sums those with the fewest: the weights are summed in more, and nowhere deeper (dense_prefill.cuh).
  static constexpr int lanes = kernels::dense_prefill::kSums;

  static Args args(const Launch& launch);

  template <class Decisions>
  static std::string launch_host(const Args& args, int threads) {
    return kernels::dense_prefill::launch_host<Decisions>(args, threads);
  }
};

}  // namespace dcpcheck::builtin
