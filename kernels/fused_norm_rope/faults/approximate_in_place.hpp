#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct approximate_in_place : Fixed {
  static constexpr const char* name = "approximate_in_place";
  static constexpr const char* doc = "Norms kv_c by an approximation where kv_c_out lies on it.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "law";
  static constexpr const char* caught_by = "in_place_is_separate";
  static constexpr bool any_order = true;

  static DCPCHECK_HD bool approximates(const Args& args, std::int64_t token, Use use) {
    (void)token;
    return use != Use::q_c_out && args.kv_c_out.data == args.kv_c.data;
  }
};

}  // namespace kernels::fused_norm_rope::faults
