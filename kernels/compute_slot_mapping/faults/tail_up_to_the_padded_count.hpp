#pragma once

#include "kernels/compute_slot_mapping/compute_slot_mapping.cuh"

namespace kernels::compute_slot_mapping::faults {

struct tail_up_to_the_padded_count : Fixed {
  static constexpr const char* name = "tail_up_to_the_padded_count";
  static constexpr const char* doc =
      "Ends the tail with the launch's padded token count: what a buffer has past it keeps the slots of an earlier batch.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "unwritten";
  static constexpr const char* caught_by = "write_set";

  static DCPCHECK_HD std::int64_t tail_end(std::int64_t capacity, std::int64_t tokens) {
    (void)capacity;
    return tokens;
  }
};

}  // namespace kernels::compute_slot_mapping::faults
