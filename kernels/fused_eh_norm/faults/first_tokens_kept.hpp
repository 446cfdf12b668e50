#pragma once

#include "kernels/fused_eh_norm/fused_eh_norm.cuh"

namespace kernels::fused_eh_norm::faults {

struct first_tokens_kept : Fixed {
  static constexpr const char* name = "first_tokens_kept";
  static constexpr const char* doc = "Norms the embedding at position 0 like any other.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD bool is_zeroed(std::int64_t position, std::int64_t token) {
    (void)position;
    (void)token;
    return false;
  }
};

}  // namespace kernels::fused_eh_norm::faults
