#pragma once

#include "kernels/fused_q/fused_q.cuh"

namespace kernels::fused_q::faults {

struct head_scale_left_out : Fixed {
  static constexpr const char* name = "head_scale_left_out";
  static constexpr const char* doc = "Leaves the last factor of the weights out.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float head_factor(float head_scale) {
    (void)head_scale;
    return 1.0F;
  }
};

}  // namespace kernels::fused_q::faults
