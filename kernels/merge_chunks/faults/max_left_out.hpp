#pragma once

#include "kernels/merge_chunks/merge_chunks.cuh"

namespace kernels::merge_chunks::faults {

struct max_left_out : Fixed {
  static constexpr const char* name = "max_left_out";
  static constexpr const char* doc =
      "Takes exponentials of the LSEs as they are: they overflow from 89 on and vanish below -103.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float shift(float largest) {
    (void)largest;
    return 0.0F;
  }
};

}  // namespace kernels::merge_chunks::faults
