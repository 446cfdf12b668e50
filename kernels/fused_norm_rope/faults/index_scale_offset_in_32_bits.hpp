#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct index_scale_offset_in_32_bits : Fixed {
  static constexpr const char* name = "index_scale_offset_in_32_bits";
  static constexpr const char* doc =
      "Counts fp32 scales of the indexer cache in 32 bits, though not its codes: wrong from 2^33 bytes on.";
  static constexpr const char* source = "FlagGems 6241";
  static constexpr const char* reason = "unwritten";
  static constexpr const char* caught_by = "write_set";

  static DCPCHECK_HD std::int64_t scales_offset(std::int64_t block, std::int64_t stride) {
    const std::int64_t scale = block * (stride / 4);
    return std::int64_t{4} * static_cast<std::int32_t>(static_cast<std::uint32_t>(scale));
  }
};

}  // namespace kernels::fused_norm_rope::faults
