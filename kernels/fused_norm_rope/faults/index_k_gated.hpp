#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct index_k_gated : Fixed {
  static constexpr const char* name = "index_k_gated";
  static constexpr const char* doc =
      "Leaves before index_k_out where the indexer's slot is negative: it stays unwritten on ranks that do not own the row.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "unwritten";
  static constexpr const char* caught_by = "write_set";

  static DCPCHECK_HD bool index_key_is_materialised(std::int64_t slot) { return slot >= 0; }
};

}  // namespace kernels::fused_norm_rope::faults
