#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct exponent_by_frexp : Fixed {
  static constexpr const char* name = "exponent_by_frexp";
  static constexpr const char* doc =
      "Takes the exponent of a scale from frexp, which is one too high where the quotient is a power of two.";
  static constexpr const char* source = "SGLang 29954";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float power_of_two(float quotient) {
    return dcpcheck::power_of_two(dcpcheck::normalise(quotient).exponent + 1);
  }
};

}  // namespace kernels::fused_norm_rope::faults
