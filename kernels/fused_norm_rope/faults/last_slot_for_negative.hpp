#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct last_slot_for_negative : Fixed {
  static constexpr const char* name = "last_slot_for_negative";
  static constexpr const char* doc =
      "Counts slot -1 from the end, as an index of an array: rows of other ranks go to the last slot of each cache.";
  static constexpr const char* source = "TensorRT-LLM 17318";
  static constexpr const char* reason = "stray-write";
  static constexpr const char* caught_by = "write_set";

  // All tokens of slot -1 share that one record.
  static constexpr bool blocks_collide = true;

  static DCPCHECK_HD std::int64_t slot(std::int64_t own, std::int64_t other, std::int64_t slots) {
    (void)other;
    return own == -1 ? slots - 1 : own;
  }
};

}  // namespace kernels::fused_norm_rope::faults
