#pragma once

#include "kernels/fused_q/fused_q.cuh"

namespace kernels::fused_q::faults {

struct q_pairing_swapped : Fixed {
  static constexpr const char* name = "q_pairing_swapped";
  static constexpr const char* doc =
      "Turns pairs (i, i + half) of q_pe where they lie at (2i, 2i + 1), and the other way round.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD bool q_interleaved(bool q) { return !q; }
};

}  // namespace kernels::fused_q::faults
