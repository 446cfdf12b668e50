#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct topk_tail_unfilled : Fixed {
  static constexpr const char* name = "topk_tail_unfilled";
  static constexpr const char* doc = "Fills topk_indices by whole blocks of 128: the rest of a row keeps stale indices.";
  static constexpr const char* source = "FlashInfer 5075";
  static constexpr const char* reason = "unwritten";
  static constexpr const char* caught_by = "write_set";

  static DCPCHECK_HD std::int64_t filled(std::int64_t width) { return width / kLanes * kLanes; }
};

}  // namespace kernels::fused_norm_rope::faults
