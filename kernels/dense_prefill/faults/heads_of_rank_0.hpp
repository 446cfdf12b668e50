#pragma once

#include "kernels/dense_prefill/dense_prefill.cuh"

namespace kernels::dense_prefill::faults {

struct heads_of_rank_0 : Fixed {
  static constexpr const char* name = "heads_of_rank_0";
  static constexpr const char* doc = "Gives every rank the keys and values of the first rank's heads.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t first_head(std::int64_t contract) {
    (void)contract;
    return 0;
  }
};

}  // namespace kernels::dense_prefill::faults
