#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct eps_of_q : Fixed {
  static constexpr const char* name = "eps_of_q";
  static constexpr const char* doc = "Norms kv_c with the eps of q_c.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float kv_eps(float kv, float q) {
    (void)kv;
    return q;
  }
};

}  // namespace kernels::fused_norm_rope::faults
