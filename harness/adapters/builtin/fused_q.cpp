#include "harness/adapters/builtin/fused_q.hpp"

#include <utility>

namespace dcpcheck::builtin {
namespace {

// The rows of a tensor of three axes, [tokens, heads, width]; by_head: [heads, tokens, width].
kernels::fused_q::HeadRows head_rows(const Launch& launch, std::string_view name, bool by_head = false) {
  if (launch.plan.find(name) == nullptr) return {};
  const View& found = view(launch, name);
  kernels::fused_q::HeadRows rows{static_cast<const std::uint16_t*>(found.data), found.strides.at(0), found.strides.at(1)};
  if (by_head) std::swap(rows.token_stride, rows.head_stride);
  return rows;
}

template <class T>
kernels::fused_q::OutRows<T> out_rows(const Launch& launch, std::string_view name) {
  return {pointer<T>(launch, name), row_stride(launch, name)};
}

}  // namespace

kernels::fused_q::Args fused_q::args(const Launch& launch) {
  const Case& value = launch.plan.value;
  Args args;
  args.tokens = launch.plan.tokens;
  args.positions = pointer<const std::int64_t>(launch, "positions");

  args.heads = value.integer("heads");
  args.q_pe = head_rows(launch, "q");
  if (args.q_pe.data != nullptr) args.q_pe.data += value.integer("qk_nope_head_dim");
  args.rope = rope_table(launch, "cos_sin_cache", "rope_interleaved");
  const bool by_head = value.choice("ql_nope_layout") == "head_major";
  args.ql_nope = head_rows(launch, by_head ? "ql_nope_by_head" : "ql_nope", by_head);
  args.nope = value.integer("kv_lora_rank");
  args.q_scale = pointer<const float>(launch, "q_scale");
  args.mqa_q = out_rows<std::uint8_t>(launch, "mqa_q");
  args.q_pe_out = out_rows<std::uint16_t>(launch, "q_pe_out");

  if (value.flag("indexer")) {
    args.index_heads = value.integer("index_heads");
    args.index_width = value.integer("index_head_dim");
    args.index_q = head_rows(launch, "index_q");
    args.index_rope = rope_table(launch, "index_cos_sin_cache", "index_rope_interleaved");
    args.index_weights = address(launch, "index_weights");
    args.index_weights_stride = row_stride(launch, "index_weights");
    args.index_weights_bf16 = value.choice("index_weights_dtype") == "bf16";
    args.index_q_fp8 = out_rows<std::uint8_t>(launch, "index_q_fp8");
    args.index_weights_out = out_rows<float>(launch, "index_weights_out");
    args.softmax_scale = value.number("softmax_scale");
    args.head_scale = value.number("head_scale");
  }

  args.pre_quant_round = value.option("pre_quant_round") == "bf16";
  args.quantise = kernels::Quantise(value.option("e4m3_overflow") == "saturate", value.option("nan") == "clamp");
  args.clamp_positions = value.option("padding_positions") == "any";
  return args;
}

}  // namespace dcpcheck::builtin
