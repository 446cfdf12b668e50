#pragma once

#include "kernels/compute_slot_mapping/compute_slot_mapping.cuh"

namespace kernels::compute_slot_mapping::faults {

struct slots_in_32_bits : Fixed {
  static constexpr const char* name = "slots_in_32_bits";
  static constexpr const char* doc = "Forms slots in the table's 32 bits before they are stored in 64.";
  static constexpr const char* source = "tokenspeed 501";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD bool in_32_bits(bool contract) {
    (void)contract;
    return true;
  }
};

}  // namespace kernels::compute_slot_mapping::faults
