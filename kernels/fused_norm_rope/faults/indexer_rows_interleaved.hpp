#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct indexer_rows_interleaved : Fixed {
  static constexpr const char* name = "indexer_rows_interleaved";
  static constexpr const char* doc = "Puts each row's scale behind its codes, where a block is all codes and then all scales.";
  static constexpr const char* source = "vLLM 50576";
  static constexpr const char* reason = "unwritten";
  static constexpr const char* caught_by = "write_set";

  static constexpr bool indexer_is_planar = false;
};

}  // namespace kernels::fused_norm_rope::faults
