#pragma once

#include "kernels/gather_cache/gather_cache.cuh"

namespace kernels::gather_cache::faults {

struct scale_of_first_tile : Fixed {
  static constexpr const char* name = "scale_of_first_tile";
  static constexpr const char* doc = "Multiplies the codes of every tile by the scale of the first one.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t scale_of(std::int64_t tile) {
    (void)tile;
    return 0;
  }
};

}  // namespace kernels::gather_cache::faults
