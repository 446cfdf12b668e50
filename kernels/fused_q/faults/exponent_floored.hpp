#pragma once

#include "kernels/fused_q/fused_q.cuh"

namespace kernels::fused_q::faults {

struct exponent_floored : Fixed {
  static constexpr const char* name = "exponent_floored";
  static constexpr const char* doc = "Rounds the exponent of a scale down, so that magnitudes past 448 saturate.";
  static constexpr const char* source = "vLLM 54563";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float scale(float quotient) { return dcpcheck::power_of_two(dcpcheck::normalise(quotient).exponent); }
};

}  // namespace kernels::fused_q::faults
