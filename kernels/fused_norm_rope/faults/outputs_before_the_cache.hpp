#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct outputs_before_the_cache : Fixed {
  static constexpr const char* name = "outputs_before_the_cache";
  static constexpr const char* doc =
      "Puts K out before it is put into the cache: in place, the cache gets rows that were normed twice.";
  static constexpr const char* source = "vLLM 48872";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static constexpr bool cache_first = false;
};

}  // namespace kernels::fused_norm_rope::faults
