#pragma once

#include "kernels/compute_slot_mapping/compute_slot_mapping.cuh"

namespace kernels::compute_slot_mapping::faults {

struct table_row_of_the_batch : Fixed {
  static constexpr const char* name = "table_row_of_the_batch";
  static constexpr const char* doc = "Takes row i of the table for request i of the batch, whatever idx_mapping says.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t table_row(std::int64_t request, std::int64_t mapped) {
    (void)mapped;
    return request;
  }
};

}  // namespace kernels::compute_slot_mapping::faults
