#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct last_element_dropped : Fixed {
  static constexpr const char* name = "last_element_dropped";
  static constexpr const char* doc = "Leaves the last element out of the sums of squares.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t summed(std::int64_t width) { return width - 1; }
};

}  // namespace kernels::fused_norm_rope::faults
