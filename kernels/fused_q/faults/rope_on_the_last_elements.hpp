#pragma once

#include "kernels/fused_q/fused_q.cuh"

namespace kernels::fused_q::faults {

struct rope_on_the_last_elements : Fixed {
  static constexpr const char* name = "rope_on_the_last_elements";
  static constexpr const char* doc = "Rotates the last elements of a head's index_q in place of its first ones.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t index_rope_start(std::int64_t width, std::int64_t rope) { return width - rope; }
};

}  // namespace kernels::fused_q::faults
