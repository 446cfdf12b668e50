#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct slot_times_stride_in_32_bits : Fixed {
  static constexpr const char* name = "slot_times_stride_in_32_bits";
  static constexpr const char* doc = "Takes a block's byte offset in 32 bits: wrong from 2^31 bytes into a cache on.";
  static constexpr const char* source = "tokenspeed 501";
  static constexpr const char* reason = "unwritten";
  static constexpr const char* caught_by = "write_set";

  static DCPCHECK_HD std::int64_t block_offset(std::int64_t block, std::int64_t stride) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(block * stride));
  }
  static DCPCHECK_HD std::int64_t scales_offset(std::int64_t block, std::int64_t stride) { return block_offset(block, stride); }
};

}  // namespace kernels::fused_norm_rope::faults
