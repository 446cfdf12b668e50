#pragma once

#include "kernels/fused_q/fused_q.cuh"

namespace kernels::fused_q::faults {

struct reciprocal_of_scale : Fixed {
  static constexpr const char* name = "reciprocal_of_scale";
  static constexpr const char* doc =
      "Multiplies mqa_q by the rounded reciprocal of its scale, where the contract divides: a quotient half way between two "
      "codes goes to the wrong one.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float quotient(float value, float divisor) { return value * (1.0F / divisor); }
};

}  // namespace kernels::fused_q::faults
