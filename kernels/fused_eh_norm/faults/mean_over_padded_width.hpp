#pragma once

#include "kernels/fused_eh_norm/fused_eh_norm.cuh"

namespace kernels::fused_eh_norm::faults {

struct mean_over_padded_width : Fixed {
  static constexpr const char* name = "mean_over_padded_width";
  static constexpr const char* doc =
      "Divides the sum of squares by the width rounded up to a power of two, the lanes of a block.";
  static constexpr const char* source = "unsloth 1867";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t divisor(std::int64_t width) {
    std::int64_t lanes = 1;
    while (lanes < width) lanes *= 2;
    return lanes;
  }
};

}  // namespace kernels::fused_eh_norm::faults
