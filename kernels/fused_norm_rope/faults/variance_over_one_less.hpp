#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct variance_over_one_less : Fixed {
  static constexpr const char* name = "variance_over_one_less";
  static constexpr const char* doc =
      "Divides the variance by one less than there are elements, as an estimate from a sample is.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float variance(float squares, float mean, std::int64_t width) {
    (void)mean;
    return squares / static_cast<float>(width - 1);
  }
};

}  // namespace kernels::fused_norm_rope::faults
