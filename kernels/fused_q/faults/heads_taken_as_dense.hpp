#pragma once

#include "kernels/fused_q/fused_q.cuh"

namespace kernels::fused_q::faults {

struct heads_taken_as_dense : Fixed {
  static constexpr const char* name = "heads_taken_as_dense";
  static constexpr const char* doc =
      "Takes the heads of q_pe and ql_nope to lie one after another, token by token, whatever their strides.";
  static constexpr const char* source = "aiter 3841";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD HeadRows laid_out(const HeadRows& rows, std::int64_t heads, std::int64_t width) {
    return {rows.data, heads * width, width};
  }
};

}  // namespace kernels::fused_q::faults
