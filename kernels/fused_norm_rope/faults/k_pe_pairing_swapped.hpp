#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct k_pe_pairing_swapped : Fixed {
  static constexpr const char* name = "k_pe_pairing_swapped";
  static constexpr const char* doc =
      "Turns pairs (i, i + half) of k_pe where they lie at (2i, 2i + 1), and the other way round.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD bool k_pe_interleaved(bool k_pe) { return !k_pe; }
};

}  // namespace kernels::fused_norm_rope::faults
