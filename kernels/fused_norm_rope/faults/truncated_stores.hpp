#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct truncated_stores : Fixed {
  static constexpr const char* name = "truncated_stores";
  static constexpr const char* doc =
      "Cuts values off where they are stored as bf16, where they are to be rounded to the nearest.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD void store(std::uint16_t* at, float value) {
    const std::uint32_t bits = dcpcheck::float_bits(value);
    *at = value == value ? static_cast<std::uint16_t>(bits >> 16) : dcpcheck::encode_bf16(value);
  }
};

}  // namespace kernels::fused_norm_rope::faults
