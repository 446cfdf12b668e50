#include "harness/adapters/builtin/fused_norm_rope.hpp"

namespace dcpcheck::builtin {
namespace {

namespace fnr = kernels::fused_norm_rope;

fnr::Rows rows(const Launch& launch, std::string_view name) {
  return {pointer<const std::uint16_t>(launch, name), row_stride(launch, name)};
}

fnr::OutRows out_rows(const Launch& launch, std::string_view name) {
  return {pointer<std::uint16_t>(launch, name), row_stride(launch, name)};
}

fnr::Cache cache(const Launch& launch, std::string_view name, std::string_view slot_mapping) {
  fnr::Cache cache;
  const TensorPlan* plan = launch.plan.find(name);
  if (plan == nullptr) return cache;
  cache.data = pointer<std::byte>(launch, name);
  cache.slot_mapping = pointer<const std::int64_t>(launch, slot_mapping);
  cache.block_size = plan->cache.kernel_block_size;
  cache.block_stride = plan->cache.block_stride;
  cache.blocks = plan->cache.blocks;
  return cache;
}

fnr::TileScale tile_scale(const std::string& name) {
  if (name == "fp32_div") return fnr::TileScale::fp32_div;
  if (name == "fp32_mul") return fnr::TileScale::fp32_mul;
  if (name == "pow2") return fnr::TileScale::pow2;
  throw HarnessError("builtin:fused_norm_rope knows no tile_scale " + name);
}

}  // namespace

kernels::fused_norm_rope::Args fused_norm_rope::args(const Launch& launch) {
  const Plan& plan = launch.plan;
  const Case& value = plan.value;
  Args args;
  args.tokens = plan.tokens;
  args.positions = pointer<const std::int64_t>(launch, "positions");

  args.q_c = rows(launch, "q_c");
  args.q_weight = pointer<const std::uint16_t>(launch, "q_weight");
  args.q_c_out = out_rows(launch, "q_c_out");
  args.q_width = value.integer("q_lora_rank");
  args.q_eps = value.number("q_eps");

  args.kv_c = rows(launch, "kv_c");
  args.kv_weight = pointer<const std::uint16_t>(launch, "kv_weight");
  args.kv_c_out = out_rows(launch, "kv_c_out");
  args.kv_width = value.integer("kv_lora_rank");
  args.kv_eps = value.number("kv_eps");
  args.k_pe = rows(launch, "k_pe");
  args.k_pe_out = out_rows(launch, "k_pe_out");
  args.rope = rope_table(launch, "cos_sin_cache", "rope_interleaved");

  args.mla = cache(launch, "mla_cache", "slot_mapping");
  args.mla_layout = mla_layout(launch);
  if (args.mla.data != nullptr) args.mla_record = plan.tensor("mla_cache").cache.record_bytes;
  args.mla_scale = pointer<const float>(launch, "mla_scale");
  args.tile_scale = tile_scale(value.option("tile_scale"));

  args.has_indexer = value.flag("indexer");
  if (args.has_indexer) {
    args.index_k = rows(launch, "index_k");
    args.index_weight = pointer<const float>(launch, "index_weight");
    args.index_bias = pointer<const float>(launch, "index_bias");
    args.index_k_out = out_rows(launch, "index_k_out");
    args.index_width = value.integer("index_head_dim");
    args.index_eps = value.number("index_eps");
    args.index_rope = rope_table(launch, "index_cos_sin_cache", "index_rope_interleaved");
    args.indexer = cache(launch, "indexer_cache", "index_slot_mapping");
    if (args.indexer.data != nullptr) args.indexer_scales = plan.tensor("indexer_cache").cache.fields.at(1).offset;
    args.topk = pointer<std::int32_t>(launch, "topk_indices");
    args.topk_stride = row_stride(launch, "topk_indices");
    args.topk_width = value.integer("index_topk");
  }

  args.norm_round = value.option("norm_round") == "bf16";
  args.pre_rope_round = value.option("pre_rope_round") == "bf16";
  args.pre_quant_round = value.option("pre_quant_round") == "bf16";
  args.quantise = kernels::Quantise(value.option("e4m3_overflow") == "saturate", value.option("nan") == "clamp");
  args.clamp_positions = value.option("padding_positions") == "any";
  return args;
}

}  // namespace dcpcheck::builtin
