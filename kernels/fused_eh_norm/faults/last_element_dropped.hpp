#pragma once

#include "kernels/fused_eh_norm/fused_eh_norm.cuh"

namespace kernels::fused_eh_norm::faults {

struct last_element_dropped : Fixed {
  static constexpr const char* name = "last_element_dropped";
  static constexpr const char* doc = "Leaves the last element out of the sum of squares.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t summed(std::int64_t width) { return width - 1; }
};

}  // namespace kernels::fused_eh_norm::faults
