#include "harness/adapters/builtin/merge_chunks.hpp"

namespace dcpcheck::builtin {
namespace {

kernels::merge_chunks::Part part(const Launch& launch, std::string_view out, std::string_view lse) {
  return {pointer<const float>(launch, out), row_stride(launch, out), pointer<const float>(launch, lse),
          row_stride(launch, lse)};
}

}  // namespace

kernels::merge_chunks::Args merge_chunks::args(const Launch& launch) {
  const Case& value = launch.plan.value;
  Args args;
  args.prefix = part(launch, "prefix_out", "prefix_lse");
  args.suffix = part(launch, "suffix_out", "suffix_lse");
  args.out = pointer<float>(launch, "out");
  args.out_stride = row_stride(launch, "out");
  args.lse = pointer<float>(launch, "lse");
  args.lse_stride = row_stride(launch, "lse");
  args.tokens = launch.plan.tokens;
  args.heads = value.integer("heads");
  args.width = value.integer("v_head_dim");
  return args;
}

}  // namespace dcpcheck::builtin
