#include "harness/adapters/builtin/fused_eh_norm.hpp"

namespace dcpcheck::builtin {
namespace {

kernels::fused_eh_norm::Half half(const Launch& launch, std::string_view data, std::string_view weight, std::string_view eps) {
  return {pointer<const std::uint16_t>(launch, data), row_stride(launch, data), pointer<const std::uint16_t>(launch, weight),
          launch.plan.value.number(eps)};
}

}  // namespace

kernels::fused_eh_norm::Args fused_eh_norm::args(const Launch& launch) {
  const Case& value = launch.plan.value;
  Args args;
  args.tokens = launch.plan.tokens;
  args.width = value.integer("hidden_size");
  args.positions = pointer<const std::int64_t>(launch, "positions");
  args.embeds = half(launch, "embeds", "embeds_weight", "embeds_eps");
  args.hidden = half(launch, "previous_hidden", "hidden_weight", "hidden_eps");
  args.out = pointer<std::uint16_t>(launch, "out");
  args.out_stride = row_stride(launch, "out");
  args.norm_round = value.option("norm_round") == "bf16";
  return args;
}

}  // namespace dcpcheck::builtin
