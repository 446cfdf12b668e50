#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct approximate_strided : Fixed {
  static constexpr const char* name = "approximate_strided";
  static constexpr const char* doc = "Norms q_c by an approximation where its rows lie apart.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "law";
  static constexpr const char* caught_by = "strided_is_contiguous";
  static constexpr bool any_order = true;

  static DCPCHECK_HD bool approximates(const Args& args, std::int64_t token, Use use) {
    (void)token;
    return use == Use::q_c_out && args.q_c.stride != args.q_width;
  }
};

}  // namespace kernels::fused_norm_rope::faults
