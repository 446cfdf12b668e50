#pragma once

#include "kernels/dense_prefill/dense_prefill.cuh"

namespace kernels::dense_prefill::faults {

struct largest_score_inexact : Fixed {
  static constexpr const char* name = "largest_score_inexact";
  static constexpr const char* doc = "Weighs the keys of the largest score by a little less than 1, the exponential of 0.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "law";
  static constexpr const char* caught_by = "exact_attention";
  static constexpr bool any_order = true;

  static DCPCHECK_HD float weight(float exact) { return exact == 1.0F ? 0x1.fffff8p-1F : exact; }
};

}  // namespace kernels::dense_prefill::faults
