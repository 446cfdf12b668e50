// What is admissible of fused_q: per head RoPE and e4m3, and the indexer's weights with the scales of its heads in them.
//
// mqa_q. Its scale s is an input. Where a value is exact, fp64's quotient by s rounded to fp32 is fp32's own, as in the
// judge. Otherwise an fp32 value in [v - e, v + e] has a quotient in [v - e, v + e] / s; the two fp64 quotients that stand
// for it are off by 2^-53 of themselves, which the slack on e covers, as no bound here is under 2^-24 of its value. The
// quotient's rounding to fp32 and then to e4m3, and division within 2 ulp, are the judge's.
//
// index_q_fp8. Each head's scale is a power of two that goes into the head's weight and is stored nowhere, so that the judge
// cannot divide by what the kernel took. What is admissible is therefore told for each exponent that a right kernel may
// have, a set K that quantise.cpp works out: one exponent, and a second where the largest magnitude, by its bound, may lie
// on either side of 1.75 * 2^e, or, under division `full`, where the quotient and its logarithm may. A quotient by 2^k is
// exact, so that the scale adds nothing to a bound.
//
//  * K = {k}, which is nearly always: codes are judged as against a stored scale of 2^k, and the weight is that of 2^k, to
//    the bit where its product has an order. RoPE leaves 2u (|x0 c| + |x1 s|) to doubt, some 2^-22 of the magnitude, so of a
//    million heads a few at most have two exponents. Without RoPE, magnitudes are exact, and there is never a second.
//  * K = {k, k'}: each code may be either's (as alternatives), the weight too. Given up, in such heads alone: that codes and
//    weight, and the codes among themselves, go by one exponent. A kernel that takes different ones for codes and weights
//    does so in its other heads as well, and is found out there.
//  * No finite bound on the largest magnitude (RoPE may overflow fp32): anything goes.
//
// index_weights_out. ((w * scale) * softmax_scale) * head_scale in fp32: three correctly rounded products of numbers that
// are known exactly; fp64 holds each product, and one rounding gives fp32's. In any order: the product with a power of two
// is exact, two others are rounded, whatever the order, or whichever two were multiplied beforehand: 2u. Products that
// underflow on the way are off by 2^-150 each, times the factors still to come.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/parallel.hpp"
#include "harness/oracle/narrow.hpp"
#include "reference/angles.hpp"
#include "reference/decode.hpp"
#include "reference/quantise.hpp"
#include "reference/sheet.hpp"

namespace dcpcheck::reference {

Expected fused_q(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options);

namespace {

// The contract of the case, as the steps below need it.
struct Contract {
  Arithmetic how;
  bool pre_quant_round, in_order;
  double softmax_scale, head_scale;

  Contract(const Case& value, const ReferenceOptions& options)
      : how{options.lanes, value.option("division") == "full"},
        pre_quant_round(value.option("pre_quant_round") == "bf16"),
        in_order(value.option("weights_product") == "in_order"),
        softmax_scale(value.number("softmax_scale")),
        head_scale(value.number("head_scale")) {}
};

// Appends the intervals of a column of `row` from its first on: that becomes the main one. Columns must come in order.
class ColumnOf {
 public:
  ColumnOf(Row& row, std::int64_t column) : row_(row), column_(column) {}
  void add(const Interval& interval) {
    if (first_) {
      row_.set(column_, interval);
    } else {
      row_.others.push_back({column_, interval});
    }
    first_ = false;
  }

 private:
  Row& row_;
  std::int64_t column_;
  bool first_ = true;
};

// x / scale.
void add_quotient(const Interval& x, double scale, ColumnOf& out) {
  if (std::isnan(scale) || !(x.error > 0)) return out.add({x.value / scale, 0});
  if (!(x.error < infinity)) return out.add({0, infinity});  // its NaN is among its other intervals
  if (std::isinf(scale)) return out.add({x.value / scale, 0});
  if (scale != 0) return out.add({x.value / scale, x.error / std::abs(scale) * slack});
  // What is divided by 0 becomes an infinity of its sign, and 0 a NaN.
  if (std::abs(x.value) > x.error) return out.add({x.value / scale, 0});
  for (const double quotient : {infinity, -infinity, nan}) out.add({quotient, 0});
}

// The elements of `values` divided by each of `scales`, into columns of `out` from `first` on.
void put_quotients(const Row& values, const std::vector<double>& scales, std::int64_t first, Row& out) {
  for (std::int64_t i = 0; i < values.columns(); ++i) {
    ColumnOf column(out, first + i);
    const std::span<const Other> others = values.others.empty() ? std::span<const Other>() : values.others_of(i);
    for (const double scale : scales) {
      add_quotient(values.at(i), scale, column);
      for (const Other& other : others) add_quotient(other.interval, scale, column);
    }
  }
}

// ((w * scale) * softmax_scale) * head_scale.
Interval product_in_order(double w, double scale, const Contract& contract) {
  const double scaled = narrow_fp32(w * scale);
  const double soft = narrow_fp32(scaled * contract.softmax_scale);
  return {static_cast<double>(narrow_fp32(soft * contract.head_scale)), 0};
}

// The same factors in any order; see above. Nothing where some order may overflow.
std::optional<Interval> product_in_any_order(double w, double scale, const Contract& contract) {
  const double factors[] = {std::abs(w), scale, contract.softmax_scale, contract.head_scale};
  const double v = w * scale * contract.softmax_scale * contract.head_scale;
  if (std::isnan(v)) return Interval{nan, 0};  // of a NaN, or of 0 and infinity
  double most = 1, least = 1;                  // what products of some of the finite factors lie between
  for (const double factor : factors) {
    if (std::isfinite(factor)) most *= std::max(factor, 1.0);
    if (factor != 0) least *= std::min(factor, 1.0);
  }
  const bool underflows = least < 0x1p-125;
  if (most >= may_overflow || (std::isinf(v) && underflows)) return std::nullopt;
  if (v == 0 || std::isinf(v)) return Interval{v, 0};
  return Interval{v, 2 * u * std::abs(v) * slack + (underflows ? 3 * underflow * most : 0)};
}

// All outputs of the op that the plan has.
struct Outputs {
  std::optional<Sheet> mqa_q, q_pe, index_q, weights;

  explicit Outputs(const Plan& plan) {
    make(plan, "mqa_q", mqa_q);
    make(plan, "q_pe_out", q_pe);
    make(plan, "index_q_fp8", index_q);
    make(plan, "index_weights_out", weights);
  }
  Expected take() {
    Expected expected;
    if (mqa_q) expected.emplace("mqa_q", mqa_q->take());
    if (q_pe) expected.emplace("q_pe_out", q_pe->take());
    if (index_q) expected.emplace("index_q_fp8", index_q->take());
    if (weights) expected.emplace("index_weights_out", weights->take());
    return expected;
  }

 private:
  static void make(const Plan& plan, std::string_view name, std::optional<Sheet>& sheet) {
    if (const TensorPlan* const tensor = plan.find(name)) sheet.emplace(plan.tokens, tensor->columns());
  }
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

  // The rank's attention heads.
  void heads(std::int64_t begin, std::int64_t end) {
    const std::int64_t rope = plan_.value.integer("qk_rope_head_dim");
    std::optional<InputRows> q;
    std::optional<Angles> angles;
    if (rope > 0) {
      q.emplace(plan_, inputs_, "q", rank_);
      angles.emplace(plan_, inputs_, "cos_sin_cache", rank_);
    }
    const std::int64_t nope = outputs_.mqa_q ? plan_.value.integer("kv_lora_rank") : 0;
    std::optional<InputRows> ql_nope;
    const bool by_head = plan_.find("ql_nope_by_head") != nullptr;
    std::vector<double> scale;
    if (outputs_.mqa_q) {
      ql_nope.emplace(plan_, inputs_, by_head ? "ql_nope_by_head" : "ql_nope", rank_);
      scale = Reader(plan_, inputs_, "q_scale", rank_).all();
    }
    for (std::int64_t t = begin; t < end; ++t) {
      out_.reset(plan_.value.integer("heads") * (nope + rope));
      for (std::int64_t head = 0; head < plan_.value.integer("heads"); ++head) {
        const std::int64_t first = head * (nope + rope);
        if (ql_nope) {
          take(by_head ? ql_nope->row(head, t) : ql_nope->row(t, head));
          put_quotients(values_, scale, first, out_);
        }
        if (rope == 0) continue;
        take(q->row(t, head).last(static_cast<std::size_t>(rope)));
        angles->turn(values_, positions_.integer(t), plan_.value.flag("rope_interleaved"), true);
        if (outputs_.mqa_q) {
          if (contract_.pre_quant_round) round_to_bf16(values_);
          put_quotients(values_, scale, first + nope, out_);
        } else {
          put_part(values_, first, out_);
        }
      }
      if (outputs_.mqa_q) outputs_.mqa_q->put(t, out_);
      if (outputs_.q_pe) outputs_.q_pe->put(t, out_);
    }
  }

  // The indexer's heads.
  void index(std::int64_t begin, std::int64_t end) {
    const std::int64_t heads = plan_.value.integer("index_heads"), width = plan_.value.integer("index_head_dim");
    InputRows queries(plan_, inputs_, "index_q", rank_);
    const Reader weights(plan_, inputs_, "index_weights", rank_);
    std::optional<Angles> angles;
    if (plan_.find("index_cos_sin_cache") != nullptr) angles.emplace(plan_, inputs_, "index_cos_sin_cache", rank_);
    for (std::int64_t t = begin; t < end; ++t) {
      out_.reset(heads * width);
      weights_.reset(heads);
      for (std::int64_t head = 0; head < heads; ++head) {
        take(queries.row(t, head));
        if (angles) angles->turn(values_, positions_.integer(t), plan_.value.flag("index_rope_interleaved"), true);
        if (contract_.pre_quant_round) round_to_bf16(values_);
        tile_scales(values_, width, ScaleRule::ue8m0, contract_.how, scales_);
        if (scales_.at(0).error == infinity) {
          for (std::int64_t i = 0; i < width; ++i) out_.give_up(head * width + i);
          weights_.give_up(head);
          continue;
        }
        std::vector<double> scales{scales_.value[0]};
        for (const Other& other : scales_.others) scales.push_back(other.interval.value);
        put_quotients(values_, scales, head * width, out_);
        put_weight(weights.number(t, head), scales, head);
      }
      outputs_.index_q->put(t, out_);
      outputs_.weights->put(t, weights_);
    }
  }

 private:
  // Sets values_ to numbers that are exact.
  void take(std::span<const double> numbers) {
    values_.reset(static_cast<std::int64_t>(numbers.size()));
    std::copy(numbers.begin(), numbers.end(), values_.value.begin());
  }
  void put_weight(double weight, const std::vector<double>& scales, std::int64_t head) {
    ColumnOf column(weights_, head);
    for (const double scale : scales) {
      const std::optional<Interval> product =
          contract_.in_order ? product_in_order(weight, scale, contract_) : product_in_any_order(weight, scale, contract_);
      if (product) {
        column.add(*product);
      } else {
        column.add({0, infinity});
        column.add({nan, 0});
      }
    }
  }

  const Plan& plan_;
  const Contract& contract_;
  Outputs& outputs_;
  const Inputs& inputs_;
  std::int64_t rank_;
  Reader positions_;
  Row values_, scales_, out_, weights_;
};

}  // namespace

Expected fused_q(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options) {
  const Contract contract(plan.value, options);
  Outputs outputs(plan);
  // Rows of padding tokens are never judged and stay 0: what they hold may be anything.
  parallel_parts(plan.live, options.threads, 4, [&](std::int64_t begin, std::int64_t end) {
    Worker worker(plan, inputs, rank, contract, outputs);
    if (outputs.mqa_q || outputs.q_pe) worker.heads(begin, end);
    if (outputs.index_q) worker.index(begin, end);
  });
  return outputs.take();
}

}  // namespace dcpcheck::reference
