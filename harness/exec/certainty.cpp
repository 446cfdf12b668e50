// With o_p, l_p the exact output and LSE of part p over its own keys, w_p = exp(l_p - ln sum exp l) and O = sum w_p o_p the
// exact output over all keys, a right kernel's parts are off by e_p and d_p, and each merge by e_m and d_m of what its inputs
// come to. Merging is an average with weights of sum 1, so errors of parts come through by their weights, and an error of an
// LSE moves weight between its part and the rest:
//
//   |out - O| <= sum_m e_m + sum_p w_p (e_p + |o_p - O| (d_p + sum_q w_q d_q + sum_m d_m))
//
// to first order; the second is d^2, under 1e-4 of it, and is in the 1 % that is added. A logit is a sum of n products in
// fp32, of those whose weight is not 0: off by n u sum |w_i| (|O_i| + E_i) and sum |w_i| E_i.
#include "harness/exec/certainty.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dcpcheck {
namespace {

constexpr double u = 0x1p-24;
constexpr double slack = 1.01;

struct Known {
  double value = 0, error = 0;
};

// Element `column` of output `name`; nothing where it is not known.
std::optional<Known> known(const JudgedRow& at, const char* name, std::int64_t column) {
  const Admissible& rows = at.expected->at(name);
  const std::int64_t element = at.row * rows.columns + column;
  const auto index = static_cast<std::size_t>(element);
  if (!rows.rows_known.empty() && !rows.rows_known[static_cast<std::size_t>(at.row)]) return std::nullopt;
  if (const auto taint = at.taint->find(name); taint != at.taint->end() && taint->second[index]) return std::nullopt;
  const Known found{rows.value[index], rows.error[index]};
  if (!std::isfinite(found.error) || std::isnan(found.value)) return std::nullopt;
  return found;
}

}  // namespace

std::optional<ExactOutputs> exact_outputs(std::span<const JudgedRow> parts, std::span<const JudgedRow> merges,
                                          std::int64_t heads, std::int64_t width) {
  ExactOutputs all;
  for (std::int64_t head = 0; head < heads; ++head) {
    std::vector<Known> lses;
    double largest = -std::numeric_limits<double>::infinity();
    for (const JudgedRow& part : parts) {
      const auto lse = known(part, "lse", part.head + head);
      if (!lse) return std::nullopt;
      lses.push_back(*lse);
      largest = std::max(largest, lse->value);
    }
    std::vector<double> weights;
    double sum = 0, shift = 0;  // shift: what any part's weight may be moved by, relatively, through the others'
    for (const Known& lse : lses) {
      const double power = lse.value == largest ? 1 : std::exp(lse.value - largest);  // -inf: a part without keys
      weights.push_back(power);
      sum += power;
    }
    for (std::size_t p = 0; p < weights.size(); ++p) {
      weights[p] /= sum;
      if (weights[p] > 0) shift += weights[p] * lses[p].error;
    }
    for (const JudgedRow& merge : merges) {
      const auto lse = known(merge, "lse", merge.head + head);
      if (!lse) return std::nullopt;
      shift += lse->error;
    }
    for (std::int64_t i = 0; i < width; ++i) {
      std::vector<Known> outs;
      double value = 0, error = 0;
      for (std::size_t p = 0; p < parts.size(); ++p) {
        const auto out = known(parts[p], "out", (parts[p].head + head) * width + i);
        if (!out) return std::nullopt;
        outs.push_back(*out);
        if (weights[p] > 0) value += weights[p] * out->value;
      }
      for (std::size_t p = 0; p < parts.size(); ++p) {
        if (weights[p] > 0) error += weights[p] * (outs[p].error + std::abs(outs[p].value - value) * (lses[p].error + shift));
      }
      for (const JudgedRow& merge : merges) {
        const auto out = known(merge, "out", (merge.head + head) * width + i);
        if (!out) return std::nullopt;
        error += out->error;
      }
      all.value.push_back(value);
      all.error.push_back(error * slack);
    }
  }
  return all;
}

TokenStep choice(const ExactOutputs& outputs, std::span<const float> table) {
  const std::size_t columns = outputs.value.size();
  const std::size_t ids = columns == 0 ? 0 : table.size() / columns;
  std::vector<Known> logits(ids);
  for (std::size_t id = 0; id < ids; ++id) {
    double magnitude = 0, terms = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      const double weight = table[id * columns + i];
      if (weight == 0) continue;
      logits[id].value += weight * outputs.value[i];
      logits[id].error += std::abs(weight) * outputs.error[i];
      magnitude += std::abs(weight) * (std::abs(outputs.value[i]) + outputs.error[i]);
      terms += 1;
    }
    logits[id].error += terms * u * magnitude * slack;
  }
  TokenStep step;
  if (ids < 2) return step;
  const auto best =
      std::max_element(logits.begin(), logits.end(), [](const Known& a, const Known& b) { return a.value < b.value; });
  double least = std::numeric_limits<double>::infinity();
  for (auto other = logits.begin(); other != logits.end(); ++other) {
    if (other == best) continue;
    const double margin = best->value - other->value, bound = best->error + other->error;
    const double multiple = bound > 0 ? margin / bound : margin > 0 ? std::numeric_limits<double>::max() : 0;
    if (multiple >= least) continue;
    least = multiple;
    step.known = true;
    step.margin = margin;
    step.bound = bound;
  }
  return step;
}

}  // namespace dcpcheck
