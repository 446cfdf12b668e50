#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct position_in_bf16 : Fixed {
  static constexpr const char* name = "position_in_bf16";
  static constexpr const char* doc = "Keeps positions in bf16, whose 8 bits are too few from 257 on.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  // Cut off rather than rounded: rounding up could leave the table.
  static DCPCHECK_HD std::int64_t position(const std::int64_t* positions, std::int64_t token) {
    int shift = 0;
    while (positions[token] >> shift >= 256) ++shift;
    return positions[token] >> shift << shift;
  }
};

}  // namespace kernels::fused_norm_rope::faults
