#pragma once

#include "kernels/fused_q/fused_q.cuh"

namespace kernels::fused_q::faults {

struct exponent_floored : Fixed {
  static constexpr const char* name = "exponent_floored";
  static constexpr const char* doc =
      "Rounds the exponent of a scale down, so that magnitudes past 448 saturate (derived; vLLM 54563 has a reader that "
      "does).";

  static DCPCHECK_HD float scale(float quotient) { return dcpcheck::power_of_two(dcpcheck::normalise(quotient).exponent); }
};

}  // namespace kernels::fused_q::faults
