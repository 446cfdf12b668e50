#pragma once

#include "kernels/fused_eh_norm/fused_eh_norm.cuh"

namespace kernels::fused_eh_norm::faults {

struct zeroed_by_product : Fixed {
  static constexpr const char* name = "zeroed_by_product";
  static constexpr const char* doc = "Multiplies the embedding at position 0 by 0: its NaNs and infinities stay.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float masked(float value, bool zeroed) { return value * (zeroed ? 0.0F : 1.0F); }
};

}  // namespace kernels::fused_eh_norm::faults
