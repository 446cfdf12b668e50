#pragma once

#include "kernels/dense_prefill/dense_prefill.cuh"

namespace kernels::dense_prefill::faults {

struct rope_part_ignored : Fixed {
  static constexpr const char* name = "rope_part_ignored";
  static constexpr const char* doc = "Leaves k_pe out of the scores: where a key lies does not matter.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t rope(std::int64_t contract) {
    (void)contract;
    return 0;
  }
};

}  // namespace kernels::dense_prefill::faults
