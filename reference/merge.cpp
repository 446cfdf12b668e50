// Merging by LSEs.
//
// Over the n parts that have keys: m = max l_r, d_r = (l_r - m) ln b for LSEs to base b, E_r = exp(d_r), S = sum E_r,
// w_r = E_r / S, out = sum w_r o_r, lse = L = m + log_b S. A kernel's errors, relative unless said otherwise:
//
//  * E_r. l_r - m is rounded (u of itself); to the argument of exp2, log2 e and the product are (1.23 u): the exponential
//    takes that times |d_r|. exp, exp2, __expf: at most 2 ulp (4u) besides (CUDA C++ Programming Guide, "Mathematical
//    Functions"). eps_r = (2.25 |d_r| + 4) u. Below 2^-126 it may be flushed: 2^-126 absolutely, at S >= 1.
//  * S. All terms are positive: sum w_r eps_r =: eps, and (n - 1) u of the additions.
//  * The weight is E_r / S, by a division or a reciprocal of at most 2 ulp (4u), before or after the sum of the outputs;
//    or exp(l_r - L), as fused corrections of DCP have it, which takes the error of L and, once more, that of its own
//    argument: u |L| ln b + log_error + 2.25 u ln S.
//  * One product (u) and n - 1 additions ((n - 1) u) of the outputs.
//  * A kernel that goes through the parts one by one rescales what it has each time the maximum rises: at most n - 1
//    exponentials and products (5u each); their arguments add up to d_r.
//
// log_error, of ln S absolutely: __logf is off by at most 2^-21.41 (6.1u) between 1/2 and 2 and by 3 ulp elsewhere, and
// products with ln 2 or log2 e by 2u of the result: 8.1 u max(1, ln S). L is rounded once more, by u |L|.
//
// So an output is off by sum w_r |o_r| (eps_r + eps + 7 (n - 1) u + max(4u, …) + u), which for two parts near each other is
// the 14u that is usually given; and L by (eps + 6 (n - 1) u + log_error) / ln b + u |L|.
#include "reference/merge.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace dcpcheck::reference {
namespace {

constexpr double ln_2 = 0.69314718055994530942;
constexpr double least_normal = 0x1p-126;

// A part that has keys, and what its weight may be off by, relatively.
struct Weighted {
  double power = 0, weight = 0, error = 0;
  std::span<const double> out;
};

// Column `i` of the merged output.
void merge_column(const std::vector<Weighted>& parts, std::size_t i, std::int64_t column, Row& out) {
  double value = 0, error = 0, reach = 0, magnitudes = 0;
  bool finite = true;
  for (const Weighted& part : parts) {
    const double o = part.out[i];
    value += part.weight * o;
    if (!std::isfinite(o)) {
      // Times a weight that may be 0 it is a NaN, times any other itself.
      if (part.weight < 0x1p-120) return out.give_up(column);
      finite = false;
      continue;
    }
    if (part.weight > 0) error += part.weight * std::abs(o) * part.error;
    reach += part.power * std::abs(o);
    magnitudes += std::abs(o);
  }
  // The outputs may be added up before they are divided by S.
  if (reach >= may_overflow) return out.give_up(column);
  if (!finite) return out.set(column, {value, 0});
  const double tiny = 2 * least_normal * (magnitudes + static_cast<double>(parts.size()));
  out.set(column, {value, error * slack + (magnitudes == 0 ? 0 : tiny)});
}

}  // namespace

void merge(std::span<const Part> parts, const MergeContract& contract, std::int64_t head, Row& out, Row& lse) {
  const std::size_t width = parts.empty() ? 0 : parts.front().out.size();
  const std::int64_t first = head * static_cast<std::int64_t>(width);
  const double ln_b = contract.base_2 ? ln_2 : 1;
  double largest = -infinity;
  for (const Part& part : parts) {
    if (std::isfinite(part.lse)) largest = std::max(largest, part.lse);
  }
  if (largest == -infinity) {
    for (std::size_t i = 0; i < width; ++i) {
      if (contract.all_empty_unspecified) out.give_up(first + static_cast<std::int64_t>(i));
    }
    lse.set(head, {-infinity, 0});
    if (contract.all_empty_unspecified) lse.give_up(head);
    return;
  }

  std::vector<Weighted> with_keys;
  double sum = 0, sum_error = 0;
  for (const Part& part : parts) {
    if (!std::isfinite(part.lse)) continue;
    const double d = (part.lse - largest) * ln_b;
    const double power = std::exp(d), error = (2.25 * std::abs(d) + 4) * u;
    with_keys.push_back({power, 0, error, part.out});
    sum += power;
    sum_error += power == 0 ? 0 : power * error;
  }
  sum_error /= sum;
  const auto others = static_cast<double>(with_keys.size() - 1);
  const double ln_sum = std::log(sum), log_error = 8.1 * u * std::max(1.0, ln_sum);
  const double merged = largest + ln_sum / ln_b;
  const double by_merged = u * std::abs(merged) * ln_b + log_error + 2.25 * u * ln_sum;
  const double common = sum_error + 7 * others * u + std::max(4 * u, by_merged) + u;
  for (Weighted& part : with_keys) {
    part.weight = part.power / sum;
    part.error = std::expm1(part.error + common);
  }
  for (std::size_t i = 0; i < width; ++i) merge_column(with_keys, i, first + static_cast<std::int64_t>(i), out);
  lse.set(head, {merged, ((sum_error + 6 * others * u + log_error) / ln_b + u * std::abs(merged)) * slack + underflow});
}

}  // namespace dcpcheck::reference
