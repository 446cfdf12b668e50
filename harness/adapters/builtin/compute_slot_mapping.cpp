#include "harness/adapters/builtin/compute_slot_mapping.hpp"

namespace dcpcheck::builtin {

kernels::compute_slot_mapping::Args compute_slot_mapping::args(const Launch& launch) {
  const Case& value = launch.plan.value;
  Args args;
  args.positions = pointer<const std::int64_t>(launch, "positions");
  args.query_start_loc = pointer<const std::int32_t>(launch, "query_start_loc");
  args.idx_mapping = pointer<const std::int32_t>(launch, "idx_mapping");
  args.block_sizes = pointer<const std::int32_t>(launch, "block_sizes");
  args.kernel_block_sizes = pointer<const std::int32_t>(launch, "kernel_block_sizes");
  args.sharded = pointer<const std::int32_t>(launch, "sharded");
  args.enabled = pointer<const std::int32_t>(launch, "enabled");
  args.slot_mapping = pointer<std::int64_t>(launch, "slot_mapping");
  args.slot_stride = row_stride(launch, "slot_mapping");
  args.capacity = launch.plan.capacity;
  args.tokens = launch.plan.tokens;
  args.requests = static_cast<std::int64_t>(value.geometry.batch.size());
  args.world_size = value.geometry.world_size;
  args.interleave = value.geometry.interleave;
  args.rank = launch.rank % value.geometry.world_size;  // DCP groups are neighbouring ranks
  args.tail_padded = value.option("tail") == "padded";
  args.columns_unchecked = value.option("column_overflow") == "unchecked";
  args.slots_i32 = value.option("slot_arithmetic") == "i32";

  for (const auto& [name, cache] : value.geometry.caches) {  // in the order of their names, as the op has them
    const std::string table = "block_table." + name;
    if (launch.plan.find(table) == nullptr) continue;
    if (args.groups == kernels::compute_slot_mapping::kGroups) {
      throw HarnessError("builtin:compute_slot_mapping takes 16 cache groups, and the case has more");
    }
    args.tables[args.groups] = pointer<const std::int32_t>(launch, table);
    args.table_strides[args.groups] = row_stride(launch, table);
    args.table_columns[args.groups] = view(launch, table).shape.at(1);
    ++args.groups;
  }
  return args;
}

}  // namespace dcpcheck::builtin
