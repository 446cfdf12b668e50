#include "harness/adapters/builtin/merge_ranks.hpp"

namespace dcpcheck::builtin {

kernels::merge_ranks::Args merge_ranks::args(const Launch& launch) {
  const Case& value = launch.plan.value;
  Args args;
  args.partial_out = pointer<const float>(launch, "partial_out");
  args.out_rank_stride = row_stride(launch, "partial_out");
  args.partial_lse = pointer<const float>(launch, "partial_lse");
  args.lse_rank_stride = row_stride(launch, "partial_lse");
  args.out = pointer<float>(launch, "out");
  args.out_stride = row_stride(launch, "out");
  args.lse = pointer<float>(launch, "lse");
  args.lse_stride = row_stride(launch, "lse");
  args.ranks = value.geometry.world_size;
  args.tokens = launch.plan.tokens;
  args.heads = value.integer("heads");
  args.width = value.integer("v_head_dim");
  args.base_2 = value.option("lse_base") == "2";
  return args;
}

}  // namespace dcpcheck::builtin
