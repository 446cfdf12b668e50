#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct late_tokens_unwritten : Fixed {
  static constexpr const char* name = "late_tokens_unwritten";
  static constexpr const char* doc = "Launches blocks for whole groups of four tokens: up to three at the end are left out.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "unwritten";
  static constexpr const char* caught_by = "write_set";

  static DCPCHECK_HD std::int64_t launched(std::int64_t tokens) { return tokens / 4 * 4; }
};

}  // namespace kernels::fused_norm_rope::faults
