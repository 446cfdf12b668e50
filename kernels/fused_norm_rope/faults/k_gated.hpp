#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct k_gated : Fixed {
  static constexpr const char* name = "k_gated";
  static constexpr const char* doc =
      "Leaves before K is materialised where the MLA slot is negative: kv_c_out and k_pe_out stay unwritten on ranks that do "
      "not own the row.";
  static constexpr const char* source = "vLLM 54907";
  static constexpr const char* reason = "unwritten";
  static constexpr const char* caught_by = "write_set";

  static DCPCHECK_HD bool keys_are_materialised(std::int64_t slot) { return slot >= 0; }
};

}  // namespace kernels::fused_norm_rope::faults
