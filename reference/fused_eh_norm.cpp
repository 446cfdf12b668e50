// What is admissible of fused_eh_norm: two RMSNorms side by side, on every rank the same.
//
// At position 0 the embedding is zeros before it is normed, so that the result is 0 times rstd times the weight: zeros,
// exactly, unless eps is 0 (1 / sqrt(0) is infinite) or the weight is no finite number; then NaNs.
#include <vector>

#include "harness/core/parallel.hpp"
#include "reference/decode.hpp"
#include "reference/norms.hpp"
#include "reference/sheet.hpp"

namespace dcpcheck::reference {

Expected fused_eh_norm(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options);

Expected fused_eh_norm(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options) {
  const Case& value = plan.value;
  const Arithmetic how{options.lanes, value.option("division") == "full"};
  const bool rounded = value.option("norm_round") == "bf16";
  const std::int64_t width = value.integer("hidden_size");
  const std::vector<double> embeds_weight = Reader(plan, inputs, "embeds_weight", rank).all();
  const std::vector<double> hidden_weight = Reader(plan, inputs, "hidden_weight", rank).all();
  const std::vector<double> zeros(static_cast<std::size_t>(width), 0);
  const Reader positions(plan, inputs, "positions", rank);
  Sheet out(plan.tokens, 2 * width);
  // Rows of padding tokens are never judged and stay 0: what they hold may be anything.
  parallel_parts(plan.live, options.threads, 16, [&](std::int64_t begin, std::int64_t end) {
    InputRows embeds(plan, inputs, "embeds", rank), hidden(plan, inputs, "previous_hidden", rank);
    Row part, row;
    for (std::int64_t t = begin; t < end; ++t) {
      row.reset(2 * width);
      const std::span<const double> embedding = positions.integer(t) == 0 ? std::span<const double>(zeros) : embeds.row(t);
      rms_norm(embedding, embeds_weight, value.number("embeds_eps"), how, rounded, part);
      put_part(part, 0, row);
      rms_norm(hidden.row(t), hidden_weight, value.number("hidden_eps"), how, rounded, part);
      put_part(part, width, row);
      out.put(t, row);
    }
  });
  Expected expected;
  expected.emplace("out", out.take());
  return expected;
}

}  // namespace dcpcheck::reference
