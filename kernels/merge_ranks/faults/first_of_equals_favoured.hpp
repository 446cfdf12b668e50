#pragma once

#include "kernels/merge_ranks/merge_ranks.cuh"

namespace kernels::merge_ranks::faults {

struct first_of_equals_favoured : Fixed {
  static constexpr const char* name = "first_of_equals_favoured";
  static constexpr const char* doc = "Gives the first part a little more weight where its LSE, over 0, is the largest.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "law";
  static constexpr const char* caught_by = "merge_order";
  static constexpr bool any_order = true;

  static DCPCHECK_HD float power(float exact, float lse, float largest, std::int64_t part, std::int64_t parts) {
    return part == 0 && parts > 1 && lse == largest && largest > 0 ? exact * 0x1.000004p0F : exact;
  }
};

}  // namespace kernels::merge_ranks::faults
