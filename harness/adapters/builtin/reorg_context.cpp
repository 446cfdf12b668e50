#include "harness/adapters/builtin/reorg_context.hpp"

namespace dcpcheck::builtin {

kernels::reorg_context::Args reorg_context::args(const Launch& launch) {
  const Case& value = launch.plan.value;
  Args args;
  args.gathered = pointer<const std::uint16_t>(launch, "gathered");
  args.piece_stride = row_stride(launch, "gathered");
  args.width = value.integer("width");
  args.local_offsets = pointer<const std::int32_t>(launch, "local_offsets");
  args.context_offsets = pointer<const std::int32_t>(launch, "context_offsets");
  args.requests = view(launch, "context_offsets").shape.at(0) - 1;
  args.context = pointer<std::uint16_t>(launch, "context");
  args.context_stride = row_stride(launch, "context");
  args.rows = view(launch, "context").shape.at(0);
  args.world_size = value.geometry.world_size;
  args.interleave = value.geometry.interleave;
  args.rank_major = value.option("order") == "rank_major";
  return args;
}

}  // namespace dcpcheck::builtin
