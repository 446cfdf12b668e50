#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct mean_over_one_more : Fixed {
  static constexpr const char* name = "mean_over_one_more";
  static constexpr const char* doc = "Divides the sums of squares by one more than there are.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t divisor(std::int64_t width) { return width + 1; }
};

}  // namespace kernels::fused_norm_rope::faults
