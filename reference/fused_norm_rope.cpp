// What is admissible of fused_norm_rope: RMSNorm of q_c and kv_c, RoPE of k_pe, LayerNorm and RoPE of index_k, and their
// records in the two caches. Values do not depend on the rank: which rows a rank stores is the write set's business.
#include <map>
#include <optional>
#include <string>

#include "harness/core/parallel.hpp"
#include "reference/angles.hpp"
#include "reference/decode.hpp"
#include "reference/norms.hpp"
#include "reference/quantise.hpp"
#include "reference/sheet.hpp"

namespace dcpcheck::reference {

Expected fused_norm_rope(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options);

namespace {

// The contract of the case, as the steps below need it.
struct Contract {
  Arithmetic how;
  bool norm_round, pre_rope_round, pre_quant_round;
  ScaleRule tile_scale;

  Contract(const Case& value, const ReferenceOptions& options)
      : how{options.lanes, value.option("division") == "full"},
        norm_round(value.option("norm_round") == "bf16"),
        pre_rope_round(value.option("pre_rope_round") == "bf16"),
        pre_quant_round(value.option("pre_quant_round") == "bf16") {
    const std::string& rule = value.option("tile_scale");
    tile_scale = rule == "fp32_div" ? ScaleRule::fp32_div : rule == "fp32_mul" ? ScaleRule::fp32_mul : ScaleRule::pow2;
  }
};

// All outputs of the op that the plan has.
class Outputs {
 public:
  explicit Outputs(const Plan& plan) {
    for (const TensorPlan& tensor : plan.tensors) {
      if (tensor.role == Role::out && tensor.name != "topk_indices") {
        sheets_.try_emplace(tensor.name, plan.tokens, tensor.columns());
      } else if (tensor.role == Role::cache) {
        for (const FieldPlan& field : tensor.cache.fields) {
          sheets_.try_emplace(tensor.name + "." + field.name, plan.tokens, field.count);
        }
      }
    }
  }
  bool wants(std::string_view name) const { return sheets_.find(name) != sheets_.end(); }
  void put(std::string_view name, std::int64_t row, const Row& source) {
    const auto sheet = sheets_.find(name);
    if (sheet != sheets_.end()) sheet->second.put(row, source);
  }
  Expected take() {
    Expected expected;
    for (auto& [name, sheet] : sheets_) expected.emplace(name, sheet.take());
    return expected;
  }

 private:
  std::map<std::string, Sheet, std::less<>> sheets_;
};

// The rows of one thread: inputs decoded, and scratch.
class Worker {
 public:
  Worker(const Plan& plan, const Inputs& inputs, std::int64_t rank, const Contract& contract, Outputs& outputs)
      : plan_(plan),
        contract_(contract),
        outputs_(outputs),
        inputs_(inputs),
        rank_(rank),
        positions_(plan, inputs, "positions", rank) {}

  void q(std::int64_t begin, std::int64_t end) {
    norm_rows("q_c", "q_weight", "q_eps", begin, end, [&](std::int64_t t) { outputs_.put("q_c_out", t, row_); });
  }

  void kv(std::int64_t begin, std::int64_t end) {
    const bool quantised = is_code("mla_cache", "kv_c");
    norm_rows("kv_c", "kv_weight", "kv_eps", begin, end, [&](std::int64_t t) {
      outputs_.put("kv_c_out", t, row_);
      if (!outputs_.wants("mla_cache.kv_c")) return;
      if (quantised && contract_.pre_quant_round) round_to_bf16(row_);
      outputs_.put("mla_cache.kv_c", t, row_);
      if (!outputs_.wants("mla_cache.tile_scales")) return;
      tile_scales(row_, tile_of("mla_cache", "kv_c"), contract_.tile_scale, contract_.how, scales_);
      outputs_.put("mla_cache.tile_scales", t, scales_);
    });
  }

  void k_pe(std::int64_t begin, std::int64_t end) {
    InputRows rows(plan_, inputs_, "k_pe", rank_);
    Angles angles(plan_, inputs_, "cos_sin_cache", rank_);
    const bool quantised = is_code("mla_cache", "k_pe");
    for (std::int64_t t = begin; t < end; ++t) {
      const std::span<const double> x = rows.row(t);
      row_.reset(static_cast<std::int64_t>(x.size()));
      std::copy(x.begin(), x.end(), row_.value.begin());
      angles.turn(row_, positions_.integer(t), plan_.value.flag("rope_interleaved"), true);
      outputs_.put("k_pe_out", t, row_);
      if (quantised && contract_.pre_quant_round) round_to_bf16(row_);
      outputs_.put("mla_cache.k_pe", t, row_);
    }
  }

  void index_k(std::int64_t begin, std::int64_t end) {
    InputRows rows(plan_, inputs_, "index_k", rank_);
    const std::vector<double> weight = Reader(plan_, inputs_, "index_weight", rank_).all();
    const std::vector<double> bias = Reader(plan_, inputs_, "index_bias", rank_).all();
    const double eps = plan_.value.number("index_eps");
    std::optional<Angles> angles;
    if (plan_.find("index_cos_sin_cache") != nullptr) angles.emplace(plan_, inputs_, "index_cos_sin_cache", rank_);
    for (std::int64_t t = begin; t < end; ++t) {
      layer_norm(rows.row(t), weight, bias, eps, contract_.how, row_);
      if (contract_.pre_rope_round) round_to_bf16(row_);
      if (angles) {
        const bool interleaved = plan_.value.flag("index_rope_interleaved");
        angles->turn(row_, positions_.integer(t), interleaved, contract_.pre_rope_round);
      }
      outputs_.put("index_k_out", t, row_);
      if (!outputs_.wants("indexer_cache.codes")) continue;
      if (contract_.pre_quant_round) round_to_bf16(row_);
      outputs_.put("indexer_cache.codes", t, row_);
      tile_scales(row_, row_.columns(), ScaleRule::ue8m0, contract_.how, scales_);
      outputs_.put("indexer_cache.scale", t, scales_);
    }
  }

 private:
  const FieldPlan* field(std::string_view cache, std::string_view name) const {
    const TensorPlan* const tensor = plan_.find(cache);
    if (tensor == nullptr) return nullptr;
    for (const FieldPlan& candidate : tensor->cache.fields) {
      if (candidate.name == name) return &candidate;
    }
    return nullptr;
  }
  bool is_code(std::string_view cache, std::string_view name) const {
    const FieldPlan* const found = field(cache, name);
    return found != nullptr && found->dtype == DType::e4m3;
  }
  std::int64_t tile_of(std::string_view cache, std::string_view name) const { return field(cache, name)->tile; }

  // RMSNorm of the rows of `name` into row_, handed on one by one.
  template <class Use>
  void norm_rows(std::string_view name, std::string_view weights, std::string_view eps, std::int64_t begin, std::int64_t end,
                 Use use) {
    InputRows rows(plan_, inputs_, name, rank_);
    const std::vector<double> weight = Reader(plan_, inputs_, weights, rank_).all();
    const double epsilon = plan_.value.number(eps);
    for (std::int64_t t = begin; t < end; ++t) {
      rms_norm(rows.row(t), weight, epsilon, contract_.how, contract_.norm_round, row_);
      use(t);
    }
  }

  const Plan& plan_;
  const Contract& contract_;
  Outputs& outputs_;
  const Inputs& inputs_;
  std::int64_t rank_;
  Reader positions_;
  Row row_, scales_;
};

// -1 throughout, for the rows of all tokens.
Admissible minus_ones(std::int64_t rows, std::int64_t columns) {
  Admissible all;
  all.rows = rows;
  all.columns = columns;
  all.exact = true;
  all.codes.assign(static_cast<std::size_t>(rows * columns) * sizeof(std::int32_t), std::byte{0xFF});
  return all;
}

}  // namespace

Expected fused_norm_rope(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options) {
  const Contract contract(plan.value, options);
  Outputs outputs(plan);
  // Rows of padding tokens are never judged and stay 0: what they hold may be anything.
  parallel_parts(plan.live, options.threads, 16, [&](std::int64_t begin, std::int64_t end) {
    Worker worker(plan, inputs, rank, contract, outputs);
    worker.q(begin, end);
    worker.kv(begin, end);
    if (plan.find("k_pe") != nullptr) worker.k_pe(begin, end);
    if (plan.find("index_k") != nullptr) worker.index_k(begin, end);
  });
  Expected expected = outputs.take();
  if (const TensorPlan* const topk = plan.find("topk_indices")) {
    expected.emplace("topk_indices", minus_ones(plan.tokens, topk->columns()));
  }
  return expected;
}

}  // namespace dcpcheck::reference
