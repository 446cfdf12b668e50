#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct cache_unguarded : Fixed {
  static constexpr const char* name = "cache_unguarded";
  static constexpr const char* doc =
      "Materialises K on every rank, but without the guard in front of the caches: slot -1 is written, one record below each "
      "cache, and the indexer's scale into its block 0.";
  static constexpr const char* source = "vLLM 54907";
  static constexpr const char* reason = "guard";
  static constexpr const char* caught_by = "write_set";

  // All tokens of slot -1 share that one record.
  static constexpr bool blocks_collide = true;

  // -1 only: with other negative slots the write could land anywhere, and end the process instead of being reported.
  static DCPCHECK_HD bool slot_is_owned(std::int64_t slot) { return slot >= -1; }
};

}  // namespace kernels::fused_norm_rope::faults
