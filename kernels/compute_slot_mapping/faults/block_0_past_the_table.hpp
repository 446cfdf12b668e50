#pragma once

#include "kernels/compute_slot_mapping/compute_slot_mapping.cuh"

namespace kernels::compute_slot_mapping::faults {

struct block_0_past_the_table : Fixed {
  static constexpr const char* name = "block_0_past_the_table";
  static constexpr const char* doc =
      "Takes block 0 where the table row has ended, as a masked load of 0 gives it: slots that look valid.";
  static constexpr const char* source = "vLLM 54296";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t past_the_table(std::int64_t row) { return row; }
};

}  // namespace kernels::compute_slot_mapping::faults
