#pragma once

#include "kernels/merge_ranks/merge_ranks.cuh"

namespace kernels::merge_ranks::faults {

struct unweighted_mean : Fixed {
  static constexpr const char* name = "unweighted_mean";
  static constexpr const char* doc = "Takes the mean of the parts that have keys, whatever their LSEs.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float weight(float share, std::int64_t parts) {
    (void)share;
    return 1.0F / static_cast<float>(parts);
  }
};

}  // namespace kernels::merge_ranks::faults
