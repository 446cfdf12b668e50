#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct reciprocal_of_scale : Fixed {
  static constexpr const char* name = "reciprocal_of_scale";
  static constexpr const char* doc =
      "Multiplies by the rounded reciprocal of a scale, where the contract divides: a quotient half way between two codes goes "
      "to the wrong one.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float quotient(float value, float scale) { return value * (1.0F / scale); }
};

}  // namespace kernels::fused_norm_rope::faults
