#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct index_scale_floored : Fixed {
  static constexpr const char* name = "index_scale_floored";
  static constexpr const char* doc = "Floors the indexer's scale at 1e-4, where its largest magnitude has that floor.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static constexpr bool index_floor_on_amax = false;
};

}  // namespace kernels::fused_norm_rope::faults
