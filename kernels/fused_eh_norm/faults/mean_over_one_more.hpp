#pragma once

#include "kernels/fused_eh_norm/fused_eh_norm.cuh"

namespace kernels::fused_eh_norm::faults {

struct mean_over_one_more : Fixed {
  static constexpr const char* name = "mean_over_one_more";
  static constexpr const char* doc = "Divides the sum of squares by one more than there are.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t divisor(std::int64_t width) { return width + 1; }
};

}  // namespace kernels::fused_eh_norm::faults
