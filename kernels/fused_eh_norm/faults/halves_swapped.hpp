#pragma once

#include "kernels/fused_eh_norm/fused_eh_norm.cuh"

namespace kernels::fused_eh_norm::faults {

struct halves_swapped : Fixed {
  static constexpr const char* name = "halves_swapped";
  static constexpr const char* doc = "Puts the hidden state first and the embedding second.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t half_of(std::int64_t part) { return 1 - part; }
};

}  // namespace kernels::fused_eh_norm::faults
