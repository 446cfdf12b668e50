#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct block_size_of_stride : Fixed {
  static constexpr const char* name = "block_size_of_stride";
  static constexpr const char* doc =
      "Takes the rows of a block to be as many as fit into its stride: wrong where blocks are padded by a row or more.";
  static constexpr const char* source = "vLLM 45111";
  static constexpr const char* reason = "unwritten";
  static constexpr const char* caught_by = "write_set";

  static DCPCHECK_HD std::int64_t block_size(const Cache& cache, std::int64_t record) { return cache.block_stride / record; }
};

}  // namespace kernels::fused_norm_rope::faults
