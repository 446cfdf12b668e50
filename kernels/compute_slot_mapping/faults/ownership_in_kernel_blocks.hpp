#pragma once

#include "kernels/compute_slot_mapping/compute_slot_mapping.cuh"

namespace kernels::compute_slot_mapping::faults {

struct ownership_in_kernel_blocks : Fixed {
  static constexpr const char* name = "ownership_in_kernel_blocks";
  static constexpr const char* doc =
      "Decides who owns a position in kernel blocks instead of logical ones: wrong where the interleave is longer than the "
      "kernel block that the backend imposed.";
  static constexpr const char* source = "vLLM 51031";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t ownership_block(std::int64_t block_size, std::int64_t kernel_block_size) {
    (void)block_size;
    return kernel_block_size;
  }
};

}  // namespace kernels::compute_slot_mapping::faults
