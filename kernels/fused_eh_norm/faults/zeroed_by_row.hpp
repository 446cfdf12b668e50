#pragma once

#include "kernels/fused_eh_norm/fused_eh_norm.cuh"

namespace kernels::fused_eh_norm::faults {

struct zeroed_by_row : Fixed {
  static constexpr const char* name = "zeroed_by_row";
  static constexpr const char* doc =
      "Takes row 0 of the launch for the first token: those of other requests keep their embeddings, and a row that goes on "
      "with cached tokens loses its own.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD bool is_zeroed(std::int64_t position, std::int64_t token) {
    (void)position;
    return token == 0;
  }
};

}  // namespace kernels::fused_eh_norm::faults
