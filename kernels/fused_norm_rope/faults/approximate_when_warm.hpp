#pragma once

#include <cstdint>

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct approximate_when_warm : Fixed {
  static constexpr const char* name = "approximate_when_warm";
  static constexpr const char* doc =
      "Takes an approximation from the fourth launch on of a rank but the first, as what is tuned while it runs does.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "law";
  static constexpr const char* caught_by = "repetition";
  static constexpr bool any_order = true;

  static bool launch_approximates(const Args& args) {
    thread_local std::int64_t last = -1;
    thread_local int alike = 0;
    alike = args.rank == last ? alike + 1 : 1;
    last = args.rank;
    return args.rank > 0 && alike >= 4;
  }
};

}  // namespace kernels::fused_norm_rope::faults
