#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct slot_maps_swapped : Fixed {
  static constexpr const char* name = "slot_maps_swapped";
  static constexpr const char* doc = "Addresses each cache by the other one's slot map.";
  static constexpr const char* source = "vllm-ascend 14536";
  static constexpr const char* reason = "unwritten";
  static constexpr const char* caught_by = "write_set";

  // A slot that one map has twice, of its own and of the other, is two tokens'.
  static constexpr bool blocks_collide = true;

  // Slots that the cache does not have stay its own: a write so far away would end the process instead of being reported.
  static DCPCHECK_HD std::int64_t slot(std::int64_t own, std::int64_t other, std::int64_t slots) {
    return other < slots ? other : own;
  }
};

}  // namespace kernels::fused_norm_rope::faults
