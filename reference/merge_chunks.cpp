// What is admissible of merge_chunks: each head's prefix and suffix merged, on every rank the same.
#include <array>
#include <iterator>
#include <vector>

#include "harness/core/parallel.hpp"
#include "reference/decode.hpp"
#include "reference/merge.hpp"
#include "reference/sample.hpp"
#include "reference/sheet.hpp"

namespace dcpcheck::reference {

Expected merge_chunks(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options);

Expected merge_chunks(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options) {
  const std::int64_t heads = plan.value.integer("heads");
  const auto width = static_cast<std::size_t>(plan.value.integer("v_head_dim"));
  const MergeContract contract{false, plan.value.option("all_empty") == "unspecified"};
  const Reader prefix_outs(plan, inputs, "prefix_out", rank), prefix_lses(plan, inputs, "prefix_lse", rank);
  const Reader suffix_outs(plan, inputs, "suffix_out", rank), suffix_lses(plan, inputs, "suffix_lse", rank);
  Sheet out(plan.tokens, plan.tensor("out").columns()), lse(plan.tokens, heads);
  const std::vector<std::int64_t> sample = sampled_rows(plan.live, options.sample);
  parallel_parts(std::ssize(sample), options.threads, 16, [&](std::int64_t begin, std::int64_t end) {
    Row out_row, lse_row;
    std::vector<double> prefix_out, suffix_out;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t token = sample[static_cast<std::size_t>(i)];
      prefix_outs.read_row(token, prefix_out);
      suffix_outs.read_row(token, suffix_out);
      out_row.reset(plan.tensor("out").columns());
      lse_row.reset(heads);
      for (std::int64_t head = 0; head < heads; ++head) {
        const std::size_t at = static_cast<std::size_t>(head) * width;
        const std::array<Part, 2> parts = {{
            {prefix_lses.number(token, head), std::span(prefix_out).subspan(at, width)},
            {suffix_lses.number(token, head), std::span(suffix_out).subspan(at, width)},
        }};
        merge(parts, contract, head, out_row, lse_row);
      }
      out.put(token, out_row);
      lse.put(token, lse_row);
    }
  });
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
