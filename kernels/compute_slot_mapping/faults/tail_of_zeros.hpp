#pragma once

#include "kernels/compute_slot_mapping/compute_slot_mapping.cuh"

namespace kernels::compute_slot_mapping::faults {

struct tail_of_zeros : Fixed {
  static constexpr const char* name = "tail_of_zeros";
  static constexpr const char* doc =
      "Fills the tail with slot 0, which a cache has, in place of -1: rows of padding tokens are written into it.";
  static constexpr const char* source = "SGLang 32477";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static constexpr std::int64_t padding = 0;
};

}  // namespace kernels::compute_slot_mapping::faults
