#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct amax_over_half : Fixed {
  static constexpr const char* name = "amax_over_half";
  static constexpr const char* doc =
      "Takes the largest magnitude of a tile, and of the indexer's key, over the first half of it.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t amax_width(std::int64_t width) { return (width + 1) / 2; }
};

}  // namespace kernels::fused_norm_rope::faults
