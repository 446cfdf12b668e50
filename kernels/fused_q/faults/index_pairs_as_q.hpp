#pragma once

#include "kernels/fused_q/fused_q.cuh"

namespace kernels::fused_q::faults {

struct index_pairs_as_q : Fixed {
  static constexpr const char* name = "index_pairs_as_q";
  static constexpr const char* doc = "Pairs the elements of index_q as those of q_pe.";
  static constexpr const char* source = "SGLang 13495, vLLM 34353";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD bool index_interleaved(bool index, bool q) {
    (void)index;
    return q;
  }
};

}  // namespace kernels::fused_q::faults
