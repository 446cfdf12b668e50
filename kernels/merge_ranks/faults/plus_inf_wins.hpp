#pragma once

#include "kernels/merge_ranks/merge_ranks.cuh"

namespace kernels::merge_ranks::faults {

struct plus_inf_wins : Fixed {
  static constexpr const char* name = "plus_inf_wins";
  static constexpr const char* doc =
      "Takes an LSE of +inf, which some kernels give for no keys, for a large one: the part without keys takes all the weight.";
  static constexpr const char* source = "FlashAttention 978, FlashMLA 77";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float read(float lse) {
    constexpr float kLargest = 3.40282347e38F;
    return lse > kLargest ? kLargest : Fixed::read(lse);
  }
};

}  // namespace kernels::merge_ranks::faults
