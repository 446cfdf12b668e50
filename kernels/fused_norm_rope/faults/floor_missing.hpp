#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct floor_missing : Fixed {
  static constexpr const char* name = "floor_missing";
  static constexpr const char* doc =
      "Takes scales as they come of the largest magnitude, down to 0: zeros are divided by zero.";
  static constexpr const char* source = "vLLM 26174";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float floored(float value, float least) {
    (void)least;
    return value;
  }
};

}  // namespace kernels::fused_norm_rope::faults
