#pragma once

#include "kernels/merge_ranks/merge_ranks.cuh"

namespace kernels::merge_ranks::faults {

struct base_2_as_e : Fixed {
  static constexpr const char* name = "base_2_as_e";
  static constexpr const char* doc = "Takes LSEs to base 2 for such to base e: the weights of unequal parts are wrong.";
  static constexpr const char* source = "vLLM 47079, SGLang 33064";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD bool base_2(bool contract) {
    (void)contract;
    return false;
  }
};

}  // namespace kernels::merge_ranks::faults
