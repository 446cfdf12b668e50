#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct position_one_too_low : Fixed {
  static constexpr const char* name = "position_one_too_low";
  static constexpr const char* doc = "Rotates by the angles of the position before the token's own.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  // Position 0 keeps its own: the row before it is no memory of the table's.
  static DCPCHECK_HD std::int64_t position(const std::int64_t* positions, std::int64_t token) {
    return positions[token] > 0 ? positions[token] - 1 : positions[token];
  }
};

}  // namespace kernels::fused_norm_rope::faults
