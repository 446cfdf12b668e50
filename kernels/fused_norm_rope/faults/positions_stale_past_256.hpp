#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct positions_stale_past_256 : Fixed {
  static constexpr const char* name = "positions_stale_past_256";
  static constexpr const char* doc =
      "Reads the positions of the first 256 tokens again and again, as from a buffer that did not grow with the batch.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t position(const std::int64_t* positions, std::int64_t token) { return positions[token % 256]; }
};

}  // namespace kernels::fused_norm_rope::faults
