#pragma once

#include "kernels/compute_slot_mapping/compute_slot_mapping.cuh"

namespace kernels::compute_slot_mapping::faults {

struct localised_before_the_offset : Fixed {
  static constexpr const char* name = "localised_before_the_offset";
  static constexpr const char* doc =
      "Localises a token's place among the new ones and the cached prefix apart and adds the two: runs of a rank that neither "
      "ends are lost.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  // No further than the right row: a column past the table row would be another request's, or no memory at all.
  static DCPCHECK_HD std::int64_t local(const Split& split, std::int64_t position, std::int64_t first) {
    const std::int64_t right = split.local(position);
    if (position < first) return right;
    const std::int64_t sum = split.local(first) + split.local(position - first);
    return sum < right ? sum : right;
  }
};

}  // namespace kernels::compute_slot_mapping::faults
