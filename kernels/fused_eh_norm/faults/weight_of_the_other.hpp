#pragma once

#include "kernels/fused_eh_norm/fused_eh_norm.cuh"

namespace kernels::fused_eh_norm::faults {

struct weight_of_the_other : Fixed {
  static constexpr const char* name = "weight_of_the_other";
  static constexpr const char* doc = "Multiplies each half by the weight of the other one.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t weight_of(std::int64_t part) { return 1 - part; }
};

}  // namespace kernels::fused_eh_norm::faults
