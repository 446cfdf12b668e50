// RMSNorm.
//
// Let M = S / n + eps with S = sum x_i^2, r = M^(-1/2), v_i = x_i r w_i. All x_i^2 are exact in fp32 (error_bounds.hpp), so
// that fused multiply-adds change nothing in S. Relative errors: S by sum(n), the mean by mean(n), the addition of eps
// by u; together d of M, which the root halves. Squares under 2^-126 may each be off by 2^-150, the mean too: (n + 2) 2^-150
// of M absolutely, which matters only where eps is 0. Then rsqrt() of r, and one rounding for each of the two products, in
// any of the three orders of multiplication. The sum, for correctly rounded division: ((n - 1) / 2 + 7.5) u, or
// (h / 2 + 7.5) u for a tree of depth h.
//
// Where S overflows fp32, 1 / sqrt(inf) is 0 and so is every finite element; where S overflows in some orders only,
// both are admissible.
#include <algorithm>
#include <cmath>

#include "reference/norms.hpp"

namespace dcpcheck::reference {
namespace {

double limit_of(double a, double b, double c) { return std::max(std::abs(a), std::max(std::abs(b), std::abs(c))); }

// rstd is 0: zeros, but 0 * inf is NaN, and an order that multiplies x * weight first may have made that inf.
void scale_by_zero(std::span<const double> x, std::span<const double> weight, Row& out) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    out.value[i] = x[i] * 0.0 * weight[i];
    if (std::isfinite(x[i]) && std::isfinite(weight[i]) && std::abs(x[i] * weight[i]) >= may_overflow) {
      out.others.push_back({static_cast<std::int64_t>(i), {nan, 0}});
    }
  }
}

// eps is 0 and every square rounds to 0 in fp32: rstd is infinite.
void scale_by_infinity(std::span<const double> x, std::span<const double> weight, Row& out) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    out.value[i] = x[i] * infinity * weight[i];
    const double product = std::abs(x[i] * weight[i]);
    if (product != 0 && product <= 0x1p-148) out.others.push_back({static_cast<std::int64_t>(i), {nan, 0}});
  }
}

// rstd is r(1 + d), |d| <= rstd_error.
void scale(std::span<const double> x, std::span<const double> weight, double r, double rstd_error, int products, Row& out) {
  const double relative = ((1 + rstd_error) * (1 + products * u * slack) - 1) * slack + 0x1p-48;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = x[i] * r * weight[i];
    out.value[i] = v;
    // A product that underflows is off by 2^-150, times what it is still multiplied by.
    const double tiny = 4 * underflow * (1 + std::abs(x[i]) + std::abs(weight[i]) + r);
    out.error[i] = v == 0 ? 0 : std::abs(v) * relative + tiny;
    if (limit_of(x[i] * weight[i], weight[i] * r, x[i] * r) >= may_overflow) [[unlikely]] {
      out.others.push_back({static_cast<std::int64_t>(i), {x[i] == 0 || weight[i] == 0 ? nan : std::copysign(infinity, v), 0}});
    }
  }
}

// The bf16 values in `out`, times the weights: exact products of bf16 numbers.
void multiply_rounded(std::span<const double> weight, Row& out) {
  const auto times = [](const Interval& y, double w) -> Interval {
    const double v = y.value * w;
    if (!(y.error < infinity)) return y;
    if (y.error != 0) return {v, y.error * std::abs(w) * slack};
    return {v, v != 0 && std::abs(v) < 0x1p-126 ? underflow : 0};
  };
  for (std::int64_t i = 0; i < out.columns(); ++i) out.set(i, times(out.at(i), weight[static_cast<std::size_t>(i)]));
  for (Other& other : out.others) other.interval = times(other.interval, weight[static_cast<std::size_t>(other.column)]);
}

// The row for one choice of weights; see above.
void normalise(std::span<const double> x, std::span<const double> weight, double eps, const Arithmetic& how, int products,
               Row& out) {
  const auto n = static_cast<std::int64_t>(x.size());
  out.reset(n);
  double sum = 0, largest = 0;
  for (const double element : x) {
    sum += element * element;
    largest = std::max(largest, std::abs(element));
  }
  if (std::isnan(sum)) return out.fill(nan);
  const double growth = how.sum(n) * slack;
  if (sum * (1 - growth) >= 0x1p128) return scale_by_zero(x, weight, out);
  const double mean_square = sum / static_cast<double>(n) + eps;
  if (eps == 0 && largest * largest <= underflow) return scale_by_infinity(x, weight, out);
  const double d = (growth + how.mean(n) + u) * slack + static_cast<double>(n + 2) * underflow / mean_square;
  // Subnormal arguments of rsqrt may be flushed, and their relative error is anything.
  if (!(mean_square * (1 - d) >= 0x1p-126) || d > 0.5) return out.give_up();
  const double rstd_error = (1 + how.rsqrt()) / std::sqrt(1 - d) - 1;
  scale(x, weight, 1 / std::sqrt(mean_square), rstd_error, products, out);
  if (sum * (1 + growth) < fp32_max) return;
  const std::vector<Other> before = std::move(out.others);
  out.others.clear();
  for (std::int64_t i = 0; i < n; ++i) {
    out.others.push_back({i, {0, 0}});
    if (std::abs(x[static_cast<std::size_t>(i)] * weight[static_cast<std::size_t>(i)]) >= may_overflow) {
      out.others.push_back({i, {nan, 0}});
    }
    for (const Other& other : before) {
      if (other.column == i) out.others.push_back(other);
    }
  }
}

}  // namespace

void rms_norm(std::span<const double> x, std::span<const double> weight, double eps, const Arithmetic& how,
              bool round_normalised, Row& out) {
  if (!round_normalised) return normalise(x, weight, eps, how, 2, out);
  const std::vector<double> ones(x.size(), 1);
  normalise(x, ones, eps, how, 1, out);
  round_to_bf16(out);
  multiply_rounded(weight, out);
}

}  // namespace dcpcheck::reference
