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
// Loops are over keys or columns that do not depend on each other, so that compilers make SIMD of them.
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

// The largest of `x`, and its sum, in eight running ones.
double largest_of(const std::vector<double>& x) {
  double largest[8];
  std::fill(std::begin(largest), std::end(largest), -infinity);
  std::size_t j = 0;
  for (; j + 8 <= x.size(); j += 8) {
    for (std::size_t i = 0; i < 8; ++i) largest[i] = std::max(largest[i], x[j + i]);
  }
  for (; j < x.size(); ++j) largest[0] = std::max(largest[0], x[j]);
  return *std::max_element(std::begin(largest), std::end(largest));
}

double sum_of(const std::vector<double>& x) {
  double sums[8] = {};
  std::size_t j = 0;
  for (; j + 8 <= x.size(); j += 8) {
    for (std::size_t i = 0; i < 8; ++i) sums[i] += x[j + i];
  }
  for (; j < x.size(); ++j) sums[0] += x[j];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// x becomes e^x - 1, for x >= 0.
void expm1_of(std::vector<double>& x) {
  if (largest_of(x) < 0x1p-7) {
    // The series' next term is under 2^-44 of its first.
    for (double& r : x) r *= 1 + r * (1 / 2.0 + r * (1 / 6.0 + r * (1 / 24.0 + r * (1 / 120.0))));
  } else {
    for (double& r : x) r = std::expm1(r);
  }
}

// How many times a running maximum over the scores can rise, from key `first` on in steps of `step`.
std::int64_t rises(const std::vector<double>& scores, const std::vector<double>& errors, std::int64_t first,
                   std::int64_t step) {
  std::int64_t count = 0;
  double least = -infinity;  // that the maximum so far is sure to have
  auto j = static_cast<std::size_t>(first);
  for (std::size_t left = scores.size(); left > 0; --left, j += static_cast<std::size_t>(step)) {
    count += scores[j] + errors[j] > least ? 1 : 0;
    least = std::max(least, scores[j] - errors[j]);
  }
  return count - 1;  // the first key's is no rise
}

// Whether fp32 adds up column `column` of the values without an error in any order: they are multiples of one power of
// two, and all of them together, by magnitude, are no more than 2^24 of it.
bool adds_exactly(const HeadValues& values, std::int64_t first, std::int64_t count, std::int64_t column) {
  int unit = 1000;
  double sum = 0;
  for (std::int64_t row = first; row < first + count; ++row) {
    const double value = values.value(row)[column];
    if (value == 0) continue;
    int exponent = 0;
    const auto digits = static_cast<unsigned>(std::abs(std::frexp(value, &exponent)) * 256);
    unit = std::min(unit, exponent - 8 + std::countr_zero(digits));
    sum += std::abs(value);
  }
  return sum == 0 || sum <= std::ldexp(1.0, 24 + unit);
}

double mean(const HeadValues& values, std::int64_t first, std::int64_t count, std::int64_t column) {
  double sum = 0;
  for (std::int64_t row = first; row < first + count; ++row) sum += values.value(row)[column];
  return sum / static_cast<double>(count);
}

}  // namespace

// Tables that grow row by row would be copied, and their pages mapped, again and again: they are reserved.
HeadKeys::HeadKeys(std::int64_t deep, std::int64_t rows) : deep_(deep) {
  keys_.reserve(static_cast<std::size_t>((rows + kPanel - 1) / kPanel * kPanel * deep));
}

void HeadKeys::add(std::span<const double> key) {
  const std::int64_t lane = rows_ % kPanel;
  if (lane == 0) keys_.resize(static_cast<std::size_t>((rows_ + kPanel) * deep_), 0.0);
  double* const at = keys_.data() + (rows_ - lane) * deep_ + lane;
  for (std::int64_t d = 0; d < deep_; ++d) at[d * kPanel] = key[static_cast<std::size_t>(d)];
  ++rows_;
}

HeadValues::HeadValues(std::int64_t width, std::int64_t rows) : width_(width) {
  for (std::vector<double>* table : {&values_, &totals_, &mosts_}) table->reserve(static_cast<std::size_t>(rows * width));
}

void HeadValues::add(std::span<const double> value, bool begins) {
  for (const double x : value) {
    const double size = std::abs(x);
    const std::size_t before = totals_.size() - value.size();
    const double total = begins ? 0 : totals_[before], most = begins ? 0 : mosts_[before];
    values_.push_back(x);
    totals_.push_back(total + size);
    mosts_.push_back(std::max(most, size));
  }
}

// Sums of q's products with keys [begin, end) of a panel, and of the products' magnitudes, into elements of those numbers.
// Four numbers of a key a turn: each turn stores its sums once.
void HeadAttention::multiply(std::span<const double> q, const double* panel, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kPanel = HeadKeys::kPanel;
  double* const __restrict sums = sums_, * const __restrict magnitudes = magnitudes_;
  std::fill(sums + begin, sums + end, 0.0);
  std::fill(magnitudes + begin, magnitudes + end, 0.0);
  std::size_t d = 0;
  for (; d + 4 <= q.size(); d += 4, panel += 4 * kPanel) {
    const double q0 = q[d], q1 = q[d + 1], q2 = q[d + 2], q3 = q[d + 3];
    for (std::int64_t j = begin; j < end; ++j) {
      const double a = q0 * panel[j], b = q1 * panel[kPanel + j];
      const double c = q2 * panel[2 * kPanel + j], e = q3 * panel[3 * kPanel + j];
      sums[j] += (a + b) + (c + e);
      magnitudes[j] += (std::abs(a) + std::abs(b)) + (std::abs(c) + std::abs(e));
    }
  }
  for (; d < q.size(); ++d, panel += kPanel) {
    for (std::int64_t j = begin; j < end; ++j) {
      sums[j] += q[d] * panel[j];
      magnitudes[j] += std::abs(q[d] * panel[j]);
    }
  }
}

// False where some score is no finite number in some order of operations.
bool HeadAttention::make_scores(std::span<const double> q, std::int64_t first, std::int64_t count) {
  constexpr std::int64_t kPanel = HeadKeys::kPanel;
  const double scale = 1 / std::sqrt(static_cast<double>(q.size()));
  const double relative = (how_.sum(static_cast<std::int64_t>(q.size())) + 7 * u) * slack * scale;
  const double flushed = static_cast<double>(q.size()) * least_normal;
  scores_.clear();
  errors_.clear();
  for (std::int64_t row = first; row < first + count;) {
    const std::int64_t panel = row / kPanel, begin = row % kPanel;
    const std::int64_t end = std::min(kPanel, first + count - panel * kPanel);
    multiply(q, keys_.panel(panel), begin, end);
    for (std::int64_t j = begin; j < end; ++j) {
      if (!(magnitudes_[j] < may_overflow)) return false;
      scores_.push_back(sums_[j] * scale);
      errors_.push_back(relative * magnitudes_[j] + (magnitudes_[j] == 0 ? 0 : flushed));
    }
    row += end - begin;
  }
  return true;
}

std::int64_t HeadAttention::rescalings() const {
  const auto n = static_cast<std::int64_t>(scores_.size());
  const std::int64_t one_by_one = std::max(rises(scores_, errors_, 0, 1), rises(scores_, errors_, n - 1, -1));
  return std::min(n - 1, std::max(one_by_one, (n + 15) / 16 + 4));
}

// Sums of the values, and of their magnitudes, times the weights. Four keys a turn: each turn stores its sums once.
void HeadAttention::weigh_values(std::int64_t first) {
  const auto n = static_cast<std::int64_t>(weights_.size()), width = values_.width();
  value_.assign(static_cast<std::size_t>(width), 0);
  magnitude_.assign(static_cast<std::size_t>(width), 0);
  double* const __restrict value = value_.data(), * const __restrict magnitude = magnitude_.data();
  const double* const w = weights_.data();
  std::int64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    const double* const v = values_.value(first + j);
    const double w0 = w[j], w1 = w[j + 1], w2 = w[j + 2], w3 = w[j + 3];
    for (std::int64_t i = 0; i < width; ++i) {
      const double a = w0 * v[i], b = w1 * v[width + i], c = w2 * v[2 * width + i], d = w3 * v[3 * width + i];
      value[i] += (a + b) + (c + d);
      magnitude[i] += (std::abs(a) + std::abs(b)) + (std::abs(c) + std::abs(d));
    }
  }
  for (; j < n; ++j) {
    const double* const v = values_.value(first + j);
    for (std::int64_t i = 0; i < width; ++i) {
      value[i] += w[j] * v[i];
      magnitude[i] += std::abs(w[j] * v[i]);
    }
  }
}

// Sums of the values' distances from the output, times the spreads.
void HeadAttention::spread_values(std::int64_t first) {
  const auto n = static_cast<std::int64_t>(spreads_.size()), width = values_.width();
  distance_.assign(static_cast<std::size_t>(width), 0);
  double* const __restrict distance = distance_.data();
  const double *const value = value_.data(), *const s = spreads_.data();
  std::int64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    const double* const v = values_.value(first + j);
    const double s0 = s[j], s1 = s[j + 1], s2 = s[j + 2], s3 = s[j + 3];
    for (std::int64_t i = 0; i < width; ++i) {
      const double o = value[i];
      distance[i] += (s0 * std::abs(v[i] - o) + s1 * std::abs(v[width + i] - o)) +
                     (s2 * std::abs(v[2 * width + i] - o) + s3 * std::abs(v[3 * width + i] - o));
    }
  }
  for (; j < n; ++j) {
    const double* const v = values_.value(first + j);
    for (std::int64_t i = 0; i < width; ++i) distance[i] += s[j] * std::abs(v[i] - value[i]);
  }
}

void HeadAttention::attend(std::span<const double> q, std::int64_t first, std::int64_t count, std::int64_t head, Row& out,
                           Row& lse) {
  const std::int64_t width = values_.width();
  if (count == 0) return lse.set(head, {-infinity, 0});
  if (!make_scores(q, first, count)) {
    for (std::int64_t i = 0; i < width; ++i) out.give_up(head * width + i);
    return lse.give_up(head);
  }

  const auto n = static_cast<double>(count);
  const double largest = largest_of(scores_);
  const bool equal = count == 1 || (std::all_of(scores_.begin(), scores_.end(), [&](double s) { return s == largest; }) &&
                                    std::all_of(errors_.begin(), errors_.end(), [](double e) { return e == 0; }));
  const auto rescaled = static_cast<double>(equal || how_.lanes > 0 ? 0 : rescalings());
  const double summed = how_.sum(count) + rescaled * u;
  weights_.resize(scores_.size());
  for (std::size_t j = 0; j < scores_.size(); ++j) weights_[j] = std::exp(scores_[j] - largest);
  const double sum = sum_of(weights_);
  for (double& weight : weights_) weight /= sum;
  spreads_.assign(scores_.size(), 0);
  if (!equal) {
    for (std::size_t j = 0; j < scores_.size(); ++j) {
      spreads_[j] = errors_[j] + (2.25 * (largest - scores_[j]) + 4 + 4 * rescaled) * u;
    }
    expm1_of(spreads_);
    for (std::size_t j = 0; j < scores_.size(); ++j) spreads_[j] = weights_[j] == 0 ? 0 : spreads_[j] * weights_[j];
  }
  const double weight_error = sum_of(spreads_);  // of S

  weigh_values(first);
  spread_values(first);
  const double *const total = values_.total(first + count - 1), *const most = values_.most(first + count - 1);
  for (std::int64_t i = 0; i < width; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (!(total[i] < may_overflow)) {
      out.give_up(head * width + i);
    } else if (equal && std::has_single_bit(scores_.size()) && adds_exactly(values_, first, count, i)) {
      out.set(head * width + i, {mean(values_, first, count, i), 0});
    } else {
      double error = distance_[at] / std::max(1 - weight_error, 0.5);
      error += (summed + 5 * u) * magnitude_[at] + summed * std::abs(value_[at]);
      out.set(head * width + i, {value_[at], error * slack + 4 * n * least_normal * (most[i] + 1)});
    }
  }
  const double ln_sum = std::log(sum), merged = largest + ln_sum;
  const double error = (equal ? errors_[0] : weight_error) + summed + 8.1 * u * std::max(1.0, ln_sum) +
                       4 * u * (std::abs(largest) + std::abs(merged));
  lse.set(head, {merged, error * slack + n * least_normal});
}

}  // namespace dcpcheck::reference
