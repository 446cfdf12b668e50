#pragma once

#include "kernels/fused_q/fused_q.cuh"

namespace kernels::fused_q::faults {

struct q_scale_left_out : Fixed {
  static constexpr const char* name = "q_scale_left_out";
  static constexpr const char* doc = "Stores mqa_q as it is, not divided by its scale.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float divisor(float q_scale) {
    (void)q_scale;
    return 1.0F;
  }
};

}  // namespace kernels::fused_q::faults
