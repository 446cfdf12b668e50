#pragma once

#include "kernels/fused_q/fused_q.cuh"

namespace kernels::fused_q::faults {

struct floor_missing : Fixed {
  static constexpr const char* name = "floor_missing";
  static constexpr const char* doc =
      "Takes the scale of an index head's largest magnitude as it is, down to 0: zeros are divided by zero.";
  static constexpr const char* source = "vLLM 26174";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float least_amax() { return 0.0F; }
};

}  // namespace kernels::fused_q::faults
