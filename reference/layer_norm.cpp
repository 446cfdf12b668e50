// LayerNorm in two passes.
//
// Let m = sum x_i / n, c_i = x_i - m, V = sum c_i^2 / n, r = (V + eps)^(-1/2), v_i = c_i r w_i + b_i.
//
// 1. The mean. Its sum is off by sum(n) A, A = sum|x_i|, or by nothing at all where all x_i are multiples of some 2^g
//    and A <= 2^24 2^g: then no partial sum in any order needs more than 24 bits. Usual rows of bf16 are of that kind.
//    With mean(n) for the division, the mean is off by at most D.
// 2. The centred elements are d_i = (x_i - m')(1 + t), |t| <= u, so off by h_i = D(1 + u) + u|c_i|.
// 3. The variance. The shift m - m' is common to all elements and sum c_i = 0, so that sum (x_i - m')^2 = sum c_i^2 +
//    n (m - m')^2: it adds at most D^2 to V. Relative: 2u for the two factors, u for the square, sum(n), mean(n), and u
//    for the addition of eps; underflows as in RMSNorm. So V + eps lies in [(V + eps)(1 - d), (V + eps + D^2)(1 + d)].
// 4. d_i r' w_i, in any order of multiplication: |w_i| r ((|c_i| + h_i)(1 + p) - |c_i|) with p of r' and of two products.
// 5. The addition of the bias, or a fused one: u |v_i|.
//
// A large mean shows in D (a sum that is not exact) and nowhere else.
#include <algorithm>
#include <bit>
#include <cmath>

#include "reference/norms.hpp"

namespace dcpcheck::reference {
namespace {

// The largest power of two that x is a multiple of.
double unit_of(double x) {
  int exponent = 0;
  const auto mantissa = static_cast<std::uint64_t>(std::ldexp(std::frexp(std::abs(x), &exponent), 53));
  return std::ldexp(1.0, exponent - 53 + std::countr_zero(mantissa));
}

struct Mean {
  double value = 0, error = 0;  // D
  bool usable = true;           // false: sums may overflow
};

Mean mean_of(std::span<const double> x, const Arithmetic& how) {
  double sum = 0, magnitude = 0, unit = infinity;
  for (const double element : x) {
    sum += element;
    magnitude += std::abs(element);
    if (element != 0) unit = std::min(unit, unit_of(element));
  }
  const auto n = static_cast<double>(x.size());
  const bool exact = magnitude <= 0x1p24 * unit;
  const double sum_error = exact ? 0 : how.sum(static_cast<std::int64_t>(x.size())) * magnitude / n;
  Mean mean{sum / n, 0, magnitude < 0x1p127};
  mean.error = sum_error + how.mean(static_cast<std::int64_t>(x.size())) * (std::abs(mean.value) + sum_error);
  if (mean.value != 0 && std::abs(mean.value) < 0x1p-100) mean.error += 2 * underflow;
  mean.error *= slack;
  return mean;
}

// V overflows: rstd is 0.
void only_bias(std::span<const double> x, std::span<const double> weight, std::span<const double> bias, double mean, Row& out) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    out.value[i] = bias[i];
    if (!(std::abs((x[i] - mean) * weight[i]) < may_overflow)) out.give_up(static_cast<std::int64_t>(i));
  }
}

}  // namespace

void layer_norm(std::span<const double> x, std::span<const double> weight, std::span<const double> bias, double eps,
                const Arithmetic& how, Row& out) {
  const auto n = static_cast<std::int64_t>(x.size());
  out.reset(n);
  // One infinity makes the mean infinite, and inf - inf NaN reaches every element through the variance.
  if (!std::all_of(x.begin(), x.end(), [](double element) { return std::isfinite(element); })) return out.fill(nan);
  const Mean mean = mean_of(x, how);
  if (!mean.usable) return out.give_up();
  double squares = 0;
  for (const double element : x) squares += (element - mean.value) * (element - mean.value);
  const double variance = squares / static_cast<double>(n);
  const double moment = variance + eps;
  if (moment == 0 && mean.error == 0) return out.fill(nan);  // 0 * rsqrt(0)
  const double shift = mean.error * mean.error / moment;
  const double d = (how.sum(n) + how.mean(n) + 4 * u) * slack + static_cast<double>(n + 2) * underflow / moment;
  if (!(moment * (1 - d) >= 0x1p-126) || d > 0.5) return out.give_up();
  if (squares * (1 - d) >= 0x1p128) return only_bias(x, weight, bias, mean.value, out);
  if ((squares + static_cast<double>(n) * mean.error * mean.error) * (1 + d) >= fp32_max) return out.give_up();

  const double r = 1 / std::sqrt(moment);
  const double above = (1 + how.rsqrt()) / std::sqrt(1 - d) - 1;
  const double below = 1 - (1 - how.rsqrt()) / std::sqrt((1 + shift) * (1 + d));
  const double p = (1 + std::max(above, below)) * (1 + 2 * u * slack) - 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double c = x[i] - mean.value, w = std::abs(weight[i]);
    const double v = c * r * weight[i] + bias[i];
    const double h = mean.error * (1 + u) + u * std::abs(c);
    const double product = w * r * (h * (1 + p) + std::abs(c) * p);
    const double tiny = 4 * underflow * (1 + std::abs(c) + w + r);
    out.value[i] = v;
    out.error[i] = (product + u * (std::abs(v) + product) + tiny) * slack;
    // Any of the products may come first, and all of them before the bias.
    const double most = std::abs(c) + h;
    if (!(w * std::max({r, most, most * r}) < may_overflow)) out.give_up(static_cast<std::int64_t>(i));
  }
}

}  // namespace dcpcheck::reference
