#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct rounded_before_the_weight : Fixed {
  static constexpr const char* name = "rounded_before_the_weight";
  static constexpr const char* doc =
      "Rounds a normed value to bf16 before it is multiplied by the weight, where the contract has it in fp32.";
  static constexpr const char* source = "vLLM 42379";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD bool norm_rounds(bool contract) {
    (void)contract;
    return true;
  }
};

}  // namespace kernels::fused_norm_rope::faults
