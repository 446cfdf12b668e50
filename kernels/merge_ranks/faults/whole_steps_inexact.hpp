#pragma once

#include "kernels/merge_ranks/merge_ranks.cuh"

namespace kernels::merge_ranks::faults {

struct whole_steps_inexact : Fixed {
  static constexpr const char* name = "whole_steps_inexact";
  static constexpr const char* doc = "Takes a power that is exactly a half of the largest for a little more.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "law";
  static constexpr const char* caught_by = "merge_base";
  static constexpr bool any_order = true;

  static DCPCHECK_HD float power(float exact, float lse, float largest, std::int64_t part, std::int64_t parts) {
    (void)part;
    (void)parts;
    return lse == largest - 1 ? exact * 0x1.000004p0F : exact;
  }
};

}  // namespace kernels::merge_ranks::faults
