// compute_slot_mapping as a kernel under test.
#pragma once

#include <string>

#include "harness/adapters/builtin/make.hpp"
#include "kernels/compute_slot_mapping/compute_slot_mapping.cuh"

namespace dcpcheck::builtin {

struct compute_slot_mapping {
  using Args = kernels::compute_slot_mapping::Args;

  static Args args(const Launch& launch);

  template <class Decisions>
  static std::string launch_host(const Args& args, int threads) {
    return kernels::compute_slot_mapping::launch_host<Decisions>(args, threads);
  }
};

}  // namespace dcpcheck::builtin
