#pragma once

#include "kernels/reorg_context/reorg_context.cuh"

namespace kernels::reorg_context::faults {

struct stale_rows_read : Fixed {
  static constexpr const char* name = "stale_rows_read";
  static constexpr const char* doc =
      "Takes the padded length of each rank where it should take the rank's own: the context gets rows that a shorter or empty "
      "rank never wrote.";
  static constexpr const char* source = "TensorRT-LLM 15383";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t taken(std::int64_t owned, std::int64_t padded) {
    (void)owned;
    return padded;
  }
};

}  // namespace kernels::reorg_context::faults
