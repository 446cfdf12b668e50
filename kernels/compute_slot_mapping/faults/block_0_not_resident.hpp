#pragma once

#include "kernels/compute_slot_mapping/compute_slot_mapping.cuh"

namespace kernels::compute_slot_mapping::faults {

struct block_0_not_resident : Fixed {
  static constexpr const char* name = "block_0_not_resident";
  static constexpr const char* doc = "Takes block 0 for one that is not there: its tokens get -1.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD bool is_resident(std::int64_t id) { return id != 0; }
};

}  // namespace kernels::compute_slot_mapping::faults
