#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct approximate_after_prefix : Fixed {
  static constexpr const char* name = "approximate_after_prefix";
  static constexpr const char* doc =
      "Norms q_c by an approximation where the first request is one token longer than what it has cached.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "law";
  static constexpr const char* caught_by = "prefix_split";
  static constexpr bool any_order = true;

  static DCPCHECK_HD bool approximates(const Args& args, std::int64_t token, Use use) {
    (void)token;
    std::int64_t run = 1;
    while (run < args.tokens && args.positions[run] == args.positions[0] + run) ++run;
    return use == Use::q_c_out && run >= 5 && args.positions[0] == run - 1;
  }
};

}  // namespace kernels::fused_norm_rope::faults
