#pragma once

#include "kernels/fused_q/fused_q.cuh"

namespace kernels::fused_q::faults {

struct position_one_too_low : Fixed {
  static constexpr const char* name = "position_one_too_low";
  static constexpr const char* doc = "Rotates by the angles of the position before the token's own.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  // Position 0 keeps its own: the row before it is no memory of the table's.
  static DCPCHECK_HD std::int64_t position(std::int64_t token_position) {
    return token_position > 0 ? token_position - 1 : token_position;
  }
};

}  // namespace kernels::fused_q::faults
