#pragma once

#include "kernels/fused_eh_norm/fused_eh_norm.cuh"

namespace kernels::fused_eh_norm::faults {

struct eps_outside_the_root : Fixed {
  static constexpr const char* name = "eps_outside_the_root";
  static constexpr const char* doc = "Adds eps to the root, not under it.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float rstd(float mean_square, float eps) {
    return static_cast<float>(1.0 / (std::sqrt(static_cast<double>(mean_square)) + static_cast<double>(eps)));
  }
};

}  // namespace kernels::fused_eh_norm::faults
