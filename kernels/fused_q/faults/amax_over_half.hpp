#pragma once

#include "kernels/fused_q/fused_q.cuh"

namespace kernels::fused_q::faults {

struct amax_over_half : Fixed {
  static constexpr const char* name = "amax_over_half";
  static constexpr const char* doc = "Takes an index head's largest magnitude over the first half of it.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t amax_width(std::int64_t width) { return (width + 1) / 2; }
};

}  // namespace kernels::fused_q::faults
