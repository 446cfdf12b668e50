#pragma once

#include <cstdint>

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct approximate_by_sentinel : Fixed {
  static constexpr const char* name = "approximate_by_sentinel";
  static constexpr const char* doc = "Norms q_c by an approximation where the last row's slot is the least of 32 bits.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "law";
  static constexpr const char* caught_by = "padding_rows";
  static constexpr bool any_order = true;

  static DCPCHECK_HD bool approximates(const Args& args, std::int64_t token, Use use) {
    (void)token;
    return use == Use::q_c_out && args.mla.slot_mapping != nullptr && args.mla.slot_mapping[args.tokens - 1] == INT32_MIN;
  }
};

}  // namespace kernels::fused_norm_rope::faults
