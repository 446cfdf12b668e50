#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct tokens_on_grid_y : Fixed {
  static constexpr const char* name = "tokens_on_grid_y";
  static constexpr const char* doc = "Puts the tokens on the grid's y axis, which ends at 65535: more are refused.";
  static constexpr const char* source = "vLLM 52381";
  static constexpr const char* reason = "launch-refused";
  static constexpr const char* caught_by = "write_set";

  static constexpr bool tokens_on_x = false;
};

}  // namespace kernels::fused_norm_rope::faults
