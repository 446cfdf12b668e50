#pragma once

#include "kernels/dense_prefill/dense_prefill.cuh"

namespace kernels::dense_prefill::faults {

struct scale_left_out : Fixed {
  static constexpr const char* name = "scale_left_out";
  static constexpr const char* doc = "Takes the products of queries and keys as scores without scaling them.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float scale(float contract) {
    (void)contract;
    return 1.0F;
  }
};

}  // namespace kernels::dense_prefill::faults
