#include "harness/adapters/builtin/dense_prefill.hpp"

#include <algorithm>
#include <cmath>

#include "harness/core/chunk.hpp"

namespace dcpcheck::builtin {

kernels::dense_prefill::Args dense_prefill::args(const Launch& launch) {
  const Case& value = launch.plan.value;
  const bool causal = value.flag("causal");
  Args args;
  args.q = pointer<const float>(launch, "q");
  args.q_stride = row_stride(launch, "q");
  args.kv_c = pointer<const std::uint16_t>(launch, causal ? "kv_c" : "context_kv_c");
  args.kv_c_stride = row_stride(launch, causal ? "kv_c" : "context_kv_c");
  args.k_pe = pointer<const std::uint16_t>(launch, causal ? "k_pe" : "context_k_pe");
  args.k_pe_stride = row_stride(launch, causal ? "k_pe" : "context_k_pe");
  args.query_start_loc = pointer<const std::int32_t>(launch, "query_start_loc");
  args.context_offsets = pointer<const std::int32_t>(launch, "context_offsets");
  args.out = pointer<float>(launch, "out");
  args.out_stride = row_stride(launch, "out");
  args.lse = pointer<float>(launch, "lse");
  args.lse_stride = row_stride(launch, "lse");
  args.tokens = launch.plan.tokens;
  args.requests = static_cast<std::int64_t>(value.geometry.batch.size());
  args.heads = value.integer("heads");
  args.first_head = launch.rank * args.heads;
  args.nope = value.integer("qk_nope_head_dim");
  args.rope = value.integer("qk_rope_head_dim");
  args.width = value.integer("v_head_dim");
  args.kv_lora = value.integer("kv_lora_rank");
  args.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(args.nope + args.rope)));
  if (causal) {
    for (const Request& request : value.geometry.batch) args.most_keys = std::max(args.most_keys, request.uncached);
  } else {
    for (const ChunkRequest& chunk : plan_chunk(value.geometry, value.geometry.caches.at("mla")).requests) {
      args.most_keys = std::max(args.most_keys, chunk.tokens);
    }
  }
  return args;
}

}  // namespace dcpcheck::builtin
