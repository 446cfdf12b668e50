#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct approximate_record : Fixed {
  static constexpr const char* name = "approximate_record";
  static constexpr const char* doc =
      "Norms the row of a bf16 cache by an approximation where kv_c_out is asked for too: the two differ.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "law";
  static constexpr const char* caught_by = "scatter_then_gather";
  static constexpr bool any_order = true;

  static DCPCHECK_HD bool approximates(const Args& args, std::int64_t token, Use use) {
    (void)token;
    return use == Use::mla_record && args.kv_c_out.data != nullptr && args.mla_layout == MlaLayout::bf16;
  }
};

}  // namespace kernels::fused_norm_rope::faults
