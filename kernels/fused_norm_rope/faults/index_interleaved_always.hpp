#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct index_interleaved_always : Fixed {
  static constexpr const char* name = "index_interleaved_always";
  static constexpr const char* doc = "Turns pairs (2i, 2i + 1) of index_k whatever the model has.";
  static constexpr const char* source = "SGLang 30342";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD bool index_interleaved(bool index, bool k_pe) {
    (void)index;
    (void)k_pe;
    return true;
  }
};

}  // namespace kernels::fused_norm_rope::faults
