#pragma once

#include "kernels/compute_slot_mapping/compute_slot_mapping.cuh"

namespace kernels::compute_slot_mapping::faults {

struct localise_replicated : Fixed {
  static constexpr const char* name = "localise_replicated";
  static constexpr const char* doc =
      "Splits replicated cache groups over the ranks as if they were sharded: most of their tokens become -1, the others get "
      "the wrong slot.";
  static constexpr const char* source = "vLLM 57260";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD bool localised(bool sharded) {
    (void)sharded;
    return true;
  }
};

}  // namespace kernels::compute_slot_mapping::faults
