#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct index_pairs_as_k_pe : Fixed {
  static constexpr const char* name = "index_pairs_as_k_pe";
  static constexpr const char* doc = "Pairs the elements of index_k as those of k_pe.";
  static constexpr const char* source = "SGLang 13495, vLLM 34353";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD bool index_interleaved(bool index, bool k_pe) {
    (void)index;
    return k_pe;
  }
};

}  // namespace kernels::fused_norm_rope::faults
