#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct e4m3_max_447 : Fixed {
  static constexpr const char* name = "e4m3_max_447";
  static constexpr const char* doc = "Makes scales for 447 as the largest code, which is 448.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static constexpr float largest_code = 447.0F;
};

}  // namespace kernels::fused_norm_rope::faults
