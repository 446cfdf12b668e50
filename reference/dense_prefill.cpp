// What is admissible of dense_prefill: each query's attention over the rows that are its own request's.
#include <iterator>
#include <optional>
#include <vector>

#include "harness/core/parallel.hpp"
#include "reference/attention.hpp"
#include "reference/decode.hpp"
#include "reference/sample.hpp"
#include "reference/sheet.hpp"

namespace dcpcheck::reference {

Expected dense_prefill(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options);

namespace {

// Rows of keys of one query.
struct Keys {
  std::int64_t first = 0, count = 0;
};

// By token of the launch, padding left out.
std::vector<Keys> keys_of_tokens(const Plan& plan, const Inputs& inputs, std::int64_t rank, bool causal) {
  const Reader starts(plan, inputs, "query_start_loc", rank);
  std::vector<Keys> all;
  for (std::int64_t request = 0; request + 1 < starts.rows(); ++request) {
    for (std::int64_t token = starts.integer(request); token < starts.integer(request + 1); ++token) {
      std::int64_t first = starts.integer(request), end = token + 1;
      if (!causal) {
        const Reader offsets(plan, inputs, "context_offsets", rank);
        first = offsets.integer(request);
        end = offsets.integer(request + 1);
      }
      all.push_back({first, end - first});
    }
  }
  return all;
}

// The columns of kv_c that a rank's heads have, `width` each, head after head and around its end: as many as they are, or
// once around and a width more, for then they repeat.
class Stretch {
 public:
  Stretch(std::int64_t start, std::int64_t width, std::int64_t heads, std::int64_t lora)
      : start_(start), width_(width), lora_(lora), repeats_(heads * width > lora + width) {
    columns_ = repeats_ ? lora + width : heads * width;
  }

  std::int64_t columns() const { return columns_; }
  // The first column of the rank's head number `head`.
  std::int64_t first(std::int64_t head) const { return repeats_ ? head * width_ % lora_ : head * width_; }
  void read(const std::vector<double>& kv_c, std::vector<double>& out) const {
    for (std::int64_t i = 0; i < columns_; ++i) out.push_back(kv_c[static_cast<std::size_t>((start_ + i) % lora_)]);
  }

 private:
  std::int64_t start_, width_, lora_, columns_ = 0;
  bool repeats_;
};

// What a rank's heads make their keys and values of.
struct Stretches {
  Stretch keys, values;
  std::int64_t rope = 0;

  HeadColumns head(std::int64_t i, std::int64_t nope, std::int64_t width) const {
    return {keys.first(i), nope, keys.columns(), rope, values.first(i), width};
  }
};

Stretches stretches_of(const Plan& plan, std::int64_t rank) {
  const std::int64_t nope = plan.value.integer("qk_nope_head_dim"), width = plan.value.integer("v_head_dim");
  const std::int64_t heads = plan.value.integer("heads"), lora = plan.value.integer("kv_lora_rank");
  return {{rank * heads * nope, nope, heads, lora},
          {lora / 2 + rank * heads * width, width, heads, lora},
          plan.value.integer("qk_rope_head_dim")};
}

// A row a row of kv_c: the keys' stretch and k_pe, and the values' stretch.
KeyRows rows_of(const Plan& plan, const Inputs& inputs, std::int64_t rank, const Stretches& stretches, bool causal) {
  const Reader kv_c(plan, inputs, causal ? "kv_c" : "context_kv_c", rank);
  const Reader starts(plan, inputs, causal ? "query_start_loc" : "context_offsets", rank);
  std::optional<Reader> k_pe;
  if (stretches.rope > 0) k_pe.emplace(plan, inputs, causal ? "k_pe" : "context_k_pe", rank);
  KeyRows out(stretches.keys.columns() + stretches.rope, stretches.values.columns(), kv_c.rows());
  std::vector<double> row, roped, keys, values;
  for (std::int64_t j = 0, request = 0; j < kv_c.rows(); ++j) {
    kv_c.read_row(j, row);
    if (k_pe) k_pe->read_row(j, roped);
    keys.clear();
    values.clear();
    stretches.keys.read(row, keys);
    keys.insert(keys.end(), roped.begin(), roped.end());
    stretches.values.read(row, values);
    while (request < starts.rows() && starts.integer(request) < j) ++request;
    out.add(keys, values, request < starts.rows() && starts.integer(request) == j);
  }
  return out;
}

}  // namespace

Expected dense_prefill(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options) {
  const bool causal = plan.value.flag("causal");
  const std::int64_t heads = plan.value.integer("heads"), width = plan.value.integer("v_head_dim");
  const std::int64_t nope = plan.value.integer("qk_nope_head_dim");
  const auto deep = static_cast<std::size_t>(nope + plan.value.integer("qk_rope_head_dim"));
  const Stretches stretches = stretches_of(plan, rank);
  const KeyRows key_rows = rows_of(plan, inputs, rank, stretches, causal);
  const std::vector<Keys> keys = keys_of_tokens(plan, inputs, rank, causal);
  const Reader queries(plan, inputs, "q", rank);
  const std::vector<std::int64_t> sample = sampled_rows(plan.live, options.sample);
  const std::size_t rows = sample.size();
  std::vector<Row> outs(rows), lses(rows);
  for (std::size_t i = 0; i < rows; ++i) {
    outs[i].reset(heads * width);
    lses[i].reset(heads);
  }
  // Rows of one head by several threads, or, where there are few rows, heads; a row takes its heads in their order.
  const auto attend = [&](std::int64_t head, std::int64_t begin, std::int64_t end, std::int64_t column,
                          std::vector<Row>& to_outs, std::vector<Row>& to_lses) {
    HeadAttention attention(key_rows, stretches.head(head, nope, width), {options.lanes, false});
    std::vector<double> query;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      queries.read_row(sample[at], query);
      const auto [first, count] = keys[static_cast<std::size_t>(sample[at])];
      attention.attend(std::span(query).subspan(static_cast<std::size_t>(head) * deep, deep), first, count, column, to_outs[at],
                       to_lses[at]);
    }
  };
  if (std::ssize(sample) >= 4 * std::int64_t{options.threads} && heads < 4 * std::int64_t{options.threads}) {
    parallel_parts(std::ssize(sample), options.threads, 4, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t head = 0; head < heads; ++head) attend(head, begin, end, head, outs, lses);
    });
  } else {
    std::vector<std::vector<Row>> head_outs(static_cast<std::size_t>(heads)), head_lses(static_cast<std::size_t>(heads));
    parallel_parts(heads, options.threads, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t head = begin; head < end; ++head) {
        std::vector<Row>& own_outs = head_outs[static_cast<std::size_t>(head)];
        std::vector<Row>& own_lses = head_lses[static_cast<std::size_t>(head)];
        own_outs.resize(rows);
        own_lses.resize(rows);
        for (Row& row : own_outs) row.reset(width);
        for (Row& row : own_lses) row.reset(1);
        attend(head, 0, std::ssize(sample), 0, own_outs, own_lses);
      }
    });
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t head = 0; head < static_cast<std::size_t>(heads); ++head) {
        put_part(head_outs[head][i], static_cast<std::int64_t>(head) * width, outs[i]);
        put_part(head_lses[head][i], static_cast<std::int64_t>(head), lses[i]);
      }
    }
  }
  Sheet out(plan.tokens, heads * width), lse(plan.tokens, heads);
  for (std::size_t i = 0; i < sample.size(); ++i) {
    out.put(sample[i], outs[i]);
    lse.put(sample[i], lses[i]);
  }
  if (std::ssize(sample) < plan.live) {
    out.know_only(sample);
    lse.know_only(sample);
  }
  Expected expected;
  expected.emplace("out", out.take());
  expected.emplace("lse", lse.take());
  return expected;
}

}  // namespace dcpcheck::reference
