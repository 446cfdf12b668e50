#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct approximate_where_owned : Fixed {
  static constexpr const char* name = "approximate_where_owned";
  static constexpr const char* doc =
      "Norms q_c by an approximation for tokens whose MLA cache row is this rank's: ranks come to different "
      "queries.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "law";
  static constexpr const char* caught_by = "ranks_agree";
  static constexpr bool any_order = true;

  static DCPCHECK_HD bool approximates(const Args& args, std::int64_t token, Use use) {
    return use == Use::q_c_out && args.mla.slot_mapping != nullptr && args.mla.slot_mapping[token] >= 0;
  }
};

}  // namespace kernels::fused_norm_rope::faults
