// Attention of a query over n keys.
//
// s_j = (q k_j) / sqrt(D), D the width of q; m = max s_j, p_j = exp(s_j - m), S = sum p_j, w_j = p_j / S, o = sum w_j v_j,
// lse = m + ln S. A kernel's errors, relative unless said otherwise:
//
//  * sigma(n) is what a sum of n terms may be off by (error_bounds.hpp): (n - 1) u in any order, less where a kernel says how
//    deep its sums are.
//  * Scores. D products (u each; fused: fewer) and their sum, the constant 1 / sqrt(D), or that times log2 e, and the product
//    with it, or with q beforehand: e_j = (sigma(D) + 7 u) sum |q k_j| / sqrt(D), absolutely.
//  * p_j. Whatever number stands for m stands for it in all of them, and cancels. The difference, log2 e and their product
//    move the exponent by 2.25 u |s_j - m|; exp, exp2, __expf are off by at most 2 ulp (4u) besides (CUDA C++ Programming
//    Guide, "Mathematical Functions"). Kernels that go through the keys in tiles rescale what they have each time the
//    maximum rises: 4u for the exponential and u for the product each time; the arguments add up to s_j - m. Together
//    eps_j = e_j + 2.25 u |s_j - m| + (4 + 4 K) u. K is how many times the maximum can rise: key by key in either
//    direction, which the scores themselves tell, or in tiles of at least 16 keys, or in 16 and more lanes that are joined.
//    It is 0 where a kernel says how it sums, with which it says that it has one maximum (ReferenceOptions::lanes).
//  * Weights p_j (1 + eps_j) that are divided by their own sum give sum w_j eps_j (v_j - o) / (1 + sum w_j eps_j), exactly.
//  * The outputs' sum has n products and K rescalings, the weights' as many but for the products; and a division or a
//    reciprocal of at most 2 ulp, of the sum or of each weight: (sigma(n) + (K + 5) u) sum w_j |v_j| + (sigma(n) + K u) |o|.
//  * lse: sum w_j eps_j + sigma(n) + K u, 8.1 u max(1, ln S) of the logarithm (merge.cpp), and 4u (|m| + |lse|) of the
//    addition and of maxima that are kept times log2 e.
//  * p_j below 2^-126 may be flushed to 0, products too.
//
// Where all scores are the same number with no error (one key, or a query of zeros), all p_j are 1. With 2^k keys no
// division rounds either, and if the values' sum is exact too, in any order, nothing does: the output must be met to the bit.
#include "reference/attention.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace dcpcheck::reference {
namespace {

constexpr double least_normal = 0x1p-126;

struct Score {
  double value = 0, error = 0;
  double weight = 0, weight_error = 0;
};

// False where some score is no finite number in some order of operations.
bool make_scores(std::span<const double> q, std::span<const double> keys, const Arithmetic& how, std::vector<Score>& out) {
  const std::size_t n = keys.size() / q.size();
  const double scale = 1 / std::sqrt(static_cast<double>(q.size()));
  const double relative = (how.sum(static_cast<std::int64_t>(q.size())) + 7 * u) * slack;
  out.assign(n, {});
  for (std::size_t j = 0; j < n; ++j) {
    double sum = 0, magnitude = 0;
    for (std::size_t i = 0; i < q.size(); ++i) {
      const double product = q[i] * keys[j * q.size() + i];
      sum += product;
      magnitude += std::abs(product);
    }
    if (!(magnitude < may_overflow)) return false;
    const double flushed = magnitude == 0 ? 0 : static_cast<double>(q.size()) * least_normal;
    out[j] = {sum * scale, relative * magnitude * scale + flushed, 0, 0};
  }
  return true;
}

// How many times a running maximum over the scores, in the order of the iterators, can rise.
template <class Iterator>
std::int64_t rises(Iterator first, Iterator last) {
  std::int64_t count = 0;
  double least = first->value - first->error;  // that the maximum so far is sure to have
  for (++first; first != last; ++first) {
    if (first->value + first->error > least) ++count;
    least = std::max(least, first->value - first->error);
  }
  return count;
}

std::int64_t rescalings(const std::vector<Score>& scores) {
  const auto n = static_cast<std::int64_t>(scores.size());
  const std::int64_t one_by_one = std::max(rises(scores.begin(), scores.end()), rises(scores.rbegin(), scores.rend()));
  return std::min(n - 1, std::max(one_by_one, (n + 15) / 16 + 4));
}

// Whether fp32 adds these bf16 numbers up without an error in any order: they are multiples of one power of two, and
// all of them together, by magnitude, are no more than 2^24 of it.
bool adds_exactly(std::span<const double> values, std::size_t column, std::size_t width) {
  int unit = 1000;
  double sum = 0;
  for (std::size_t i = column; i < values.size(); i += width) {
    if (values[i] == 0) continue;
    int exponent = 0;
    const auto digits = static_cast<unsigned>(std::abs(std::frexp(values[i], &exponent)) * 256);
    unit = std::min(unit, exponent - 8 + std::countr_zero(digits));
    sum += std::abs(values[i]);
  }
  return sum == 0 || sum <= std::ldexp(1.0, 24 + unit);
}

}  // namespace

void attend(std::span<const double> q, std::span<const double> keys, std::span<const double> values, std::int64_t width,
            const Arithmetic& how, std::int64_t head, Row& out, Row& lse) {
  const auto columns = static_cast<std::size_t>(width);
  const std::int64_t first = head * width;
  if (keys.empty()) {
    lse.set(head, {-infinity, 0});
    return;
  }
  std::vector<Score> scores;
  if (!make_scores(q, keys, how, scores)) {
    for (std::int64_t i = 0; i < width; ++i) out.give_up(first + i);
    return lse.give_up(head);
  }

  const auto n = static_cast<double>(scores.size());
  double largest = -infinity, sum = 0;
  for (const Score& score : scores) largest = std::max(largest, score.value);
  for (Score& score : scores) sum += score.weight = std::exp(score.value - largest);
  const bool equal = scores.size() == 1 || std::all_of(scores.begin(), scores.end(), [&](const Score& score) {
                       return score.value == largest && score.error == 0;
                     });
  const auto rescaled = static_cast<double>(equal || how.lanes > 0 ? 0 : rescalings(scores));
  const double summed = how.sum(static_cast<std::int64_t>(scores.size())) + rescaled * u;
  double weight_error = 0;  // of S
  for (Score& score : scores) {
    score.weight /= sum;
    const double relative = score.error + (2.25 * (largest - score.value) + 4 + 4 * rescaled) * u;
    score.weight_error = equal || score.weight == 0 ? 0 : std::expm1(relative);
    weight_error += score.weight * score.weight_error;
  }

  for (std::size_t i = 0; i < columns; ++i) {
    const std::int64_t column = first + static_cast<std::int64_t>(i);
    double value = 0, magnitude = 0, most = 0, total = 0, plain = 0;
    for (std::size_t j = 0; j < scores.size(); ++j) {
      const double v = values[j * columns + i];
      value += scores[j].weight * v;
      magnitude += scores[j].weight * std::abs(v);
      most = std::max(most, std::abs(v));
      total += std::abs(v);
      plain += v;
    }
    if (!(total < may_overflow)) {
      out.give_up(column);
      continue;
    }
    if (equal && std::has_single_bit(scores.size()) && adds_exactly(values, i, columns)) {
      out.set(column, {plain / n, 0});
      continue;
    }
    double error = 0;
    for (std::size_t j = 0; j < scores.size(); ++j) {
      error += scores[j].weight * scores[j].weight_error * std::abs(values[j * columns + i] - value);
    }
    error /= std::max(1 - weight_error, 0.5);
    error += (summed + 5 * u) * magnitude + summed * std::abs(value);
    out.set(column, {value, error * slack + 4 * n * least_normal * (most + 1)});
  }
  const double ln_sum = std::log(sum), merged = largest + ln_sum;
  const double error = (equal ? scores[0].error : weight_error) + summed + 8.1 * u * std::max(1.0, ln_sum) +
                       4 * u * (std::abs(largest) + std::abs(merged));
  lse.set(head, {merged, error * slack + n * least_normal});
}

}  // namespace dcpcheck::reference
