// What is admissible of merge_ranks: each head's parts of all ranks merged, on every rank the same.
#include <vector>

#include "harness/core/parallel.hpp"
#include "reference/decode.hpp"
#include "reference/merge.hpp"
#include "reference/sheet.hpp"

namespace dcpcheck::reference {

Expected merge_ranks(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options);

Expected merge_ranks(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options) {
  const std::int64_t heads = plan.value.integer("heads");
  const auto width = static_cast<std::size_t>(plan.value.integer("v_head_dim"));
  const MergeContract contract{plan.value.option("lse_base") == "2", plan.value.option("all_empty") == "unspecified"};
  const Reader outs(plan, inputs, "partial_out", rank), lses(plan, inputs, "partial_lse", rank);
  std::vector<std::vector<double>> out_of, lse_of;  // by rank: of all its tokens
  for (std::int64_t part = 0; part < outs.rows(); ++part) {
    outs.read_row(part, out_of.emplace_back());
    lses.read_row(part, lse_of.emplace_back());
  }
  Sheet out(plan.tokens, plan.tensor("out").columns()), lse(plan.tokens, heads);
  parallel_parts(plan.live, options.threads, 16, [&](std::int64_t begin, std::int64_t end) {
    Row out_row, lse_row;
    std::vector<Part> parts(out_of.size());
    for (std::int64_t token = begin; token < end; ++token) {
      out_row.reset(plan.tensor("out").columns());
      lse_row.reset(heads);
      for (std::int64_t head = 0; head < heads; ++head) {
        const auto at = static_cast<std::size_t>(token * heads + head);
        for (std::size_t part = 0; part < parts.size(); ++part) {
          parts[part] = {lse_of[part][at], std::span(out_of[part]).subspan(at * width, width)};
        }
        merge(parts, contract, head, out_row, lse_row);
      }
      out.put(token, out_row);
      lse.put(token, lse_row);
    }
  });
  Expected expected;
  expected.emplace("out", out.take());
  expected.emplace("lse", lse.take());
  return expected;
}

}  // namespace dcpcheck::reference
