#pragma once

#include "kernels/merge_ranks/merge_ranks.cuh"

namespace kernels::merge_ranks::faults {

struct base_2_as_e : Fixed {
  static constexpr const char* name = "base_2_as_e";
  static constexpr const char* doc =
      "Takes LSEs to base 2 for such to base e: the weights of unequal parts are wrong (vLLM 47079, SGLang 33064).";

  static DCPCHECK_HD bool base_2(bool contract) {
    (void)contract;
    return false;
  }
};

}  // namespace kernels::merge_ranks::faults
