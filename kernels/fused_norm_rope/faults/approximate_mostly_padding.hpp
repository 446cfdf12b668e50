#pragma once

#include <cstdint>

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct approximate_mostly_padding : Fixed {
  static constexpr const char* name = "approximate_mostly_padding";
  static constexpr const char* doc = "Norms q_c by an approximation where the last 12 rows of the launch are padding.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "law";
  static constexpr const char* caught_by = "batch_neighbours";
  static constexpr bool any_order = true;

  static DCPCHECK_HD bool approximates(const Args& args, std::int64_t token, Use use) {
    (void)token;
    constexpr std::int64_t kRows = 12;
    if (use != Use::q_c_out || args.mla.slot_mapping == nullptr || args.tokens <= kRows) return false;
    bool padding = true;
    for (std::int64_t row = args.tokens - kRows; row < args.tokens; ++row)
      padding = padding && args.mla.slot_mapping[row] == INT64_MIN;
    return padding;
  }
};

}  // namespace kernels::fused_norm_rope::faults
