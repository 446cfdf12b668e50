#pragma once

#include "kernels/merge_ranks/merge_ranks.cuh"

namespace kernels::merge_ranks::faults {

struct single_part_scaled : Fixed {
  static constexpr const char* name = "single_part_scaled";
  static constexpr const char* doc = "Multiplies the one part that has keys by a weight just under 1.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "law";
  static constexpr const char* caught_by = "merge_neutral";
  static constexpr bool any_order = true;

  static DCPCHECK_HD float weight(float share, std::int64_t parts) { return parts == 1 ? 0x1.fffff8p-1F : share; }
};

}  // namespace kernels::merge_ranks::faults
