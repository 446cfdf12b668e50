#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct variance_over_padded_lanes : Fixed {
  static constexpr const char* name = "variance_over_padded_lanes";
  static constexpr const char* doc =
      "Counts the lanes past a row's end, up to a power of two, as zeros in the variance: each adds the mean's square.";
  static constexpr const char* source = "unsloth 1867";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float variance(float squares, float mean, std::int64_t width) {
    std::int64_t lanes = 1;
    while (lanes < width) lanes *= 2;
    return (squares + static_cast<float>(lanes - width) * (mean * mean)) / static_cast<float>(width);
  }
};

}  // namespace kernels::fused_norm_rope::faults
