#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct approximate_captured : Fixed {
  static constexpr const char* name = "approximate_captured";
  static constexpr const char* doc = "Norms q_c by an approximation in launches that are captured into a graph.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "law";
  static constexpr const char* caught_by = "graph_is_eager";
  static constexpr bool any_order = true;

  static DCPCHECK_HD bool approximates(const Args& args, std::int64_t token, Use use) {
    (void)token;
    return use == Use::q_c_out && args.captured;
  }
};

}  // namespace kernels::fused_norm_rope::faults
