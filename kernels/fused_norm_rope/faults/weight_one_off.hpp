#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct weight_one_off : Fixed {
  static constexpr const char* name = "weight_one_off";
  static constexpr const char* doc = "Multiplies an element by the weight of the one before it.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  // Element 0 keeps its own: what lies before the weights is no memory of theirs.
  static DCPCHECK_HD std::int64_t weight_at(std::int64_t i) { return i > 0 ? i - 1 : i; }
};

}  // namespace kernels::fused_norm_rope::faults
