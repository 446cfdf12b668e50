#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

namespace kernels::fused_norm_rope::faults {

struct approximate_off_position : Fixed {
  static constexpr const char* name = "approximate_off_position";
  static constexpr const char* doc =
      "Norms a cache row by an approximation where its place in the block is not that of its position, as it "
      "never is under W = 1; only where kv_c_out is not asked for.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "law";
  static constexpr const char* caught_by = "union_of_shards";
  static constexpr bool any_order = true;

  static DCPCHECK_HD bool approximates(const Args& args, std::int64_t token, Use use) {
    return use == Use::mla_record && args.kv_c_out.data == nullptr &&
           args.mla.slot_mapping[token] % args.mla.block_size != args.positions[token] % args.mla.block_size;
  }
};

}  // namespace kernels::fused_norm_rope::faults
