#pragma once

#include "kernels/fused_q/fused_q.cuh"

namespace kernels::fused_q::faults {

struct rounded_before_quantisation : Fixed {
  static constexpr const char* name = "rounded_before_quantisation";
  static constexpr const char* doc =
      "Rounds values to bf16 before it quantises them and takes their scale, where the contract has them in fp32.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD bool rounds(bool contract) {
    (void)contract;
    return true;
  }
};

}  // namespace kernels::fused_q::faults
