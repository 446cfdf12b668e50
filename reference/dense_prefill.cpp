// What is admissible of dense_prefill: each query's attention over the rows that are its own request's.
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
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

// The column of kv_c that a head's key starts with, and its value. Heads that start with the same one have the same.
std::int64_t key_start(const Plan& plan, std::int64_t head) {
  return head * plan.value.integer("qk_nope_head_dim") % plan.value.integer("kv_lora_rank");
}
std::int64_t value_start(const Plan& plan, std::int64_t head) {
  const std::int64_t lora = plan.value.integer("kv_lora_rank");
  return (lora / 2 + head * plan.value.integer("v_head_dim")) % lora;
}

// The keys that start with column `start`, a row a row of kv_c.
HeadKeys keys_from(const Plan& plan, const Inputs& inputs, std::int64_t rank, std::int64_t start, bool causal) {
  const std::int64_t nope = plan.value.integer("qk_nope_head_dim"), rope = plan.value.integer("qk_rope_head_dim");
  const std::int64_t lora = plan.value.integer("kv_lora_rank");
  const Reader kv_c(plan, inputs, causal ? "kv_c" : "context_kv_c", rank);
  std::optional<Reader> k_pe;
  if (rope > 0) k_pe.emplace(plan, inputs, causal ? "k_pe" : "context_k_pe", rank);
  HeadKeys out(nope + rope, kv_c.rows());
  std::vector<double> roped, key;
  for (std::int64_t j = 0; j < kv_c.rows(); ++j) {
    if (k_pe) k_pe->read_row(j, roped);
    key.clear();
    for (std::int64_t d = 0; d < nope; ++d) key.push_back(kv_c.number(j, (start + d) % lora));
    key.insert(key.end(), roped.begin(), roped.end());
    out.add(key);
  }
  return out;
}

// The values that start with column `start`.
HeadValues values_from(const Plan& plan, const Inputs& inputs, std::int64_t rank, std::int64_t start, bool causal) {
  const std::int64_t width = plan.value.integer("v_head_dim"), lora = plan.value.integer("kv_lora_rank");
  const Reader kv_c(plan, inputs, causal ? "kv_c" : "context_kv_c", rank);
  const Reader starts(plan, inputs, causal ? "query_start_loc" : "context_offsets", rank);
  HeadValues out(width, kv_c.rows());
  std::vector<double> value;
  for (std::int64_t j = 0, request = 0; j < kv_c.rows(); ++j) {
    value.clear();
    for (std::int64_t d = 0; d < width; ++d) value.push_back(kv_c.number(j, (start + d) % lora));
    while (request < starts.rows() && starts.integer(request) < j) ++request;
    out.add(value, request < starts.rows() && starts.integer(request) == j);
  }
  return out;
}

// What `make` makes of each start, which are all different: several at a time.
template <class Table, class Make>
std::map<std::int64_t, Table> tables_of(const std::set<std::int64_t>& starts, int threads, Make make) {
  std::map<std::int64_t, Table> tables;
  std::mutex guard;
  const std::vector<std::int64_t> each(starts.begin(), starts.end());
  parallel_parts(std::ssize(each), threads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t start = each[static_cast<std::size_t>(i)];
      Table table = make(start);
      const std::scoped_lock lock(guard);
      tables.emplace(start, std::move(table));
    }
  });
  return tables;
}

// The keys and values of a rank's heads, by where they start.
struct HeadTables {
  std::map<std::int64_t, HeadKeys> keys;
  std::map<std::int64_t, HeadValues> values;
};

HeadTables tables_of_heads(const Plan& plan, const Inputs& inputs, std::int64_t rank, bool causal, int threads) {
  const std::int64_t heads = plan.value.integer("heads");
  std::set<std::int64_t> key_starts, value_starts;
  for (std::int64_t head = rank * heads; head < (rank + 1) * heads; ++head) {
    key_starts.insert(key_start(plan, head));
    value_starts.insert(value_start(plan, head));
  }
  return {tables_of<HeadKeys>(key_starts, threads,
                              [&](std::int64_t start) { return keys_from(plan, inputs, rank, start, causal); }),
          tables_of<HeadValues>(value_starts, threads,
                                [&](std::int64_t start) { return values_from(plan, inputs, rank, start, causal); })};
}

}  // namespace

Expected dense_prefill(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options) {
  const bool causal = plan.value.flag("causal");
  const std::int64_t heads = plan.value.integer("heads"), width = plan.value.integer("v_head_dim");
  const auto deep = static_cast<std::size_t>(plan.value.integer("qk_nope_head_dim") + plan.value.integer("qk_rope_head_dim"));
  const std::vector<Keys> keys = keys_of_tokens(plan, inputs, rank, causal);
  const HeadTables tables = tables_of_heads(plan, inputs, rank, causal, options.threads);
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
    const std::int64_t global = rank * heads + head;
    HeadAttention attention(tables.keys.at(key_start(plan, global)), tables.values.at(value_start(plan, global)),
                            {options.lanes, false});
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
