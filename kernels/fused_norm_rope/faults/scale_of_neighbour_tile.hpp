#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct scale_of_neighbour_tile : Fixed {
  static constexpr const char* name = "scale_of_neighbour_tile";
  static constexpr const char* doc = "Stores the scale of a tile where the next one's belongs.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t scale_at(std::int64_t tile, std::int64_t tiles) { return (tile + 1) % tiles; }
};

}  // namespace kernels::fused_norm_rope::faults
