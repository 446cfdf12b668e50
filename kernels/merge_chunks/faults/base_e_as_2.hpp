#pragma once

#include "kernels/merge_chunks/merge_chunks.cuh"

namespace kernels::merge_chunks::faults {

struct base_e_as_2 : Fixed {
  static constexpr const char* name = "base_e_as_2";
  static constexpr const char* doc = "Takes LSEs to base e for such to base 2: the weights of unequal parts are wrong.";
  static constexpr const char* source = "vLLM 47079";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD bool base_2(bool contract) {
    (void)contract;
    return true;
  }
};

}  // namespace kernels::merge_chunks::faults
