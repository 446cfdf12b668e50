#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct index_weight_in_bf16 : Fixed {
  static constexpr const char* name = "index_weight_in_bf16";
  static constexpr const char* doc =
      "Rounds the weights of the indexer's LayerNorm to bf16, where the contract has them in fp32.";
  static constexpr const char* source = "aiter 3451";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD float index_weight(float weight) { return round_bf16(weight); }
};

}  // namespace kernels::fused_norm_rope::faults
