#pragma once

#include "kernels/merge_chunks/merge_chunks.cuh"

namespace kernels::merge_chunks::faults {

struct empty_not_neutral : Fixed {
  static constexpr const char* name = "empty_not_neutral";
  static constexpr const char* doc =
      "Gives a part without keys a weight as any: -inf minus -inf is a NaN, and so is 0 times what such a part was left to "
      "hold.";
  static constexpr const char* source = "vLLM 28181, vLLM 39148, FlashInfer 4975";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD bool is_empty(float lse) {
    (void)lse;
    return false;
  }
};

}  // namespace kernels::merge_chunks::faults
