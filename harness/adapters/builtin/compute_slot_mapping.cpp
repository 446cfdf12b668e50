#include "harness/adapters/builtin/compute_slot_mapping.hpp"

namespace dcpcheck::builtin {

std::vector<kernels::compute_slot_mapping::Args> compute_slot_mapping::args(const Launch& launch) {
  const Case& value = launch.plan.value;
  Args all;
  all.positions = pointer<const std::int64_t>(launch, "positions");
  all.query_start_loc = pointer<const std::int32_t>(launch, "query_start_loc");
  all.idx_mapping = pointer<const std::int32_t>(launch, "idx_mapping");
  all.block_sizes = pointer<const std::int32_t>(launch, "block_sizes");
  all.kernel_block_sizes = pointer<const std::int32_t>(launch, "kernel_block_sizes");
  all.sharded = pointer<const std::int32_t>(launch, "sharded");
  all.enabled = pointer<const std::int32_t>(launch, "enabled");
  all.slot_mapping = pointer<std::int64_t>(launch, "slot_mapping");
  all.slot_stride = row_stride(launch, "slot_mapping");
  all.capacity = launch.plan.capacity;
  all.tokens = launch.plan.tokens;
  all.requests = static_cast<std::int64_t>(value.geometry.batch.size());
  all.world_size = value.geometry.world_size;
  all.interleave = value.geometry.interleave;
  all.rank = launch.rank % value.geometry.world_size;  // DCP groups are neighbouring ranks
  all.tail_padded = value.option("tail") == "padded";
  all.columns_unchecked = value.option("column_overflow") == "unchecked";
  all.slots_i32 = value.option("slot_arithmetic") == "i32";

  std::vector<Args> launches;
  std::int64_t group = 0;
  for (const auto& [name, cache] : value.geometry.caches) {  // in the order of their names, as the op has them
    const std::string table = "block_table." + name;
    if (launch.plan.find(table) == nullptr) continue;
    if (group % kernels::compute_slot_mapping::kGroups == 0) {
      Args& next = launches.emplace_back(all);
      next.block_sizes += group;
      next.kernel_block_sizes += group;
      next.sharded += group;
      next.enabled += group;
      next.slot_mapping += group * all.slot_stride;
    }
    Args& args = launches.back();
    args.tables[args.groups] = pointer<const std::int32_t>(launch, table);
    args.table_strides[args.groups] = row_stride(launch, table);
    args.table_columns[args.groups] = view(launch, table).shape.at(1);
    ++args.groups;
    ++group;
  }
  return launches;
}

}  // namespace dcpcheck::builtin
