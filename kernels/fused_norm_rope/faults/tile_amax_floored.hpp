#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct tile_amax_floored : Fixed {
  static constexpr const char* name = "tile_amax_floored";
  static constexpr const char* doc =
      "Floors the largest magnitude of a tile at 1e-4, where a scale that is a power of two has that floor.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static constexpr bool tile_floor_on_amax = true;
};

}  // namespace kernels::fused_norm_rope::faults
