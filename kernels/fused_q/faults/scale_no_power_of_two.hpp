#pragma once

#include "kernels/fused_q/fused_q.cuh"

namespace kernels::fused_q::faults {

struct scale_no_power_of_two : Fixed {
  static constexpr const char* name = "scale_no_power_of_two";
  static constexpr const char* doc = "Scales index heads by amax / 448 itself.";
  static constexpr const char* source = "aiter 3451";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float scale(float quotient) { return quotient; }
};

}  // namespace kernels::fused_q::faults
