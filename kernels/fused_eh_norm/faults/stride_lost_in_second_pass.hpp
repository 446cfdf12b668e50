#pragma once

#include "kernels/fused_eh_norm/fused_eh_norm.cuh"

namespace kernels::fused_eh_norm::faults {

struct stride_lost_in_second_pass : Fixed {
  static constexpr const char* name = "stride_lost_in_second_pass";
  static constexpr const char* doc =
      "Takes the mean over rows as they are strided, but norms elements as if rows lay one after another.";
  static constexpr const char* source = "LightLLM 1467";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t second_stride(std::int64_t stride, std::int64_t width) {
    (void)stride;
    return width;
  }
};

}  // namespace kernels::fused_eh_norm::faults
