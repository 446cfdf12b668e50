#pragma once

#include "kernels/gather_cache/gather_cache.cuh"

namespace kernels::gather_cache::faults {

struct scale_left_out : Fixed {
  static constexpr const char* name = "scale_left_out";
  static constexpr const char* doc = "Takes fp8 codes for values: no scale reaches the gather.";
  static constexpr const char* source = "local-inference-lab/vllm 14";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float factor(float scale) {
    (void)scale;
    return 1.0F;
  }
};

}  // namespace kernels::gather_cache::faults
