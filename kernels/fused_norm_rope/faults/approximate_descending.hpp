#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct approximate_descending : Fixed {
  static constexpr const char* name = "approximate_descending";
  static constexpr const char* doc = "Norms q_c by an approximation between tokens whose positions count down.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "law";
  static constexpr const char* caught_by = "token_permutation";
  static constexpr bool any_order = true;

  static DCPCHECK_HD bool approximates(const Args& args, std::int64_t token, Use use) {
    if (use != Use::q_c_out || token == 0 || token + 1 >= args.tokens) return false;
    const std::int64_t* const at = args.positions + token;
    return at[-1] == at[0] + 1 && at[0] == at[1] + 1;
  }
};

}  // namespace kernels::fused_norm_rope::faults
