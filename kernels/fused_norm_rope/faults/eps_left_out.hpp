#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct eps_left_out : Fixed {
  static constexpr const char* name = "eps_left_out";
  static constexpr const char* doc = "Leaves eps out of all norms: rows near 0 come out too large, and zeros as NaN.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float rstd(float mean_square, float eps) {
    (void)eps;
    return rsqrt(mean_square);
  }
};

}  // namespace kernels::fused_norm_rope::faults
