#include "harness/adapters/builtin/gather_cache.hpp"

#include "harness/core/chunk.hpp"

namespace dcpcheck::builtin {

kernels::gather_cache::Args gather_cache::args(const Launch& launch) {
  const Plan& plan = launch.plan;
  const Case& value = plan.value;
  const CachePlan& cache = plan.tensor("mla_cache").cache;
  Args args;
  args.data = pointer<const std::byte>(launch, "mla_cache");
  args.block_size = cache.kernel_block_size;
  args.block_stride = cache.block_stride;
  args.record = cache.record_bytes;
  args.layout = mla_layout(launch);
  args.kv_width = value.integer("kv_lora_rank");
  args.pe_width = value.integer("qk_rope_head_dim");
  args.mla_scale = pointer<const float>(launch, "mla_scale");

  args.table = pointer<const std::int32_t>(launch, "block_table");
  args.table_stride = row_stride(launch, "block_table");
  args.table_columns = view(launch, "block_table").shape.at(1);
  args.local_starts = pointer<const std::int32_t>(launch, "local_starts");
  args.local_offsets = pointer<const std::int32_t>(launch, "local_offsets");
  args.requests = view(launch, "local_starts").shape.at(0);

  args.workspace = pointer<std::uint16_t>(launch, "workspace");
  args.workspace_stride = row_stride(launch, "workspace");
  args.rows = view(launch, "workspace").shape.at(0);

  const ChunkPlan chunk = plan_chunk(value.geometry, value.geometry.caches.at("mla"));
  args.world_size = chunk.sharding.world_size;
  args.interleave = chunk.sharding.interleave;
  args.rank = launch.rank % chunk.sharding.world_size;  // DCP groups are neighbouring ranks
  return args;
}

}  // namespace dcpcheck::builtin
