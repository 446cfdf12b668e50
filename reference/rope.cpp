// RoPE: y0 = x0 c - x1 s, y1 = x1 c + x0 s, with table values that are inputs and thus exact.
//
// With |error of x| <= e: the inputs contribute |c| e0 + |s| e1. Two products and one addition, some of it fused, are off
// by at most u |x0 c| + u |x1 s| + u |y|(1 + u) <= 2u B (1 + u), B = |c|(|x0| + e0) + |s|(|x1| + e1): absolute, so under
// cancellation many codes are admissible, as they should be. Where all four factors are bf16 the products are exact, and
// only u |y| of the addition remains.
#include <algorithm>
#include <cmath>

#include "reference/rope.hpp"

namespace dcpcheck::reference {
namespace {

// a x + b y.
Interval combine(const Interval& x, double a, const Interval& y, double b, bool exact_products) {
  const double value = a * x.value + b * y.value;
  if (!std::isfinite(value)) return {value, 0};
  if (!(x.error < infinity && y.error < infinity)) return {0, infinity};
  const double reach = std::abs(a) * (std::abs(x.value) + x.error) + std::abs(b) * (std::abs(y.value) + y.error);
  if (reach >= may_overflow) return {0, infinity};
  const double carried = std::abs(a) * x.error + std::abs(b) * y.error;
  const bool exact = exact_products && x.error == 0 && y.error == 0;
  const double rounding = exact ? u * std::abs(value) + 0x1p-52 * reach : 2 * u * reach;
  return {value, (carried + rounding) * slack + (reach == 0 ? 0 : 4 * underflow)};
}

// Every combination of the pair's intervals.
void turn_sets(const Row& row, std::int64_t first, std::int64_t second, double c, double s, bool exact_products, Interval* out,
               std::vector<Other>& others) {
  std::vector<Interval> xs{row.at(first)}, ys{row.at(second)};
  for (const Other& other : row.others_of(first)) xs.push_back(other.interval);
  for (const Other& other : row.others_of(second)) ys.push_back(other.interval);
  bool main = true;
  for (const Interval& x : xs) {
    for (const Interval& y : ys) {
      const Interval turned[2] = {combine(x, c, y, -s, exact_products), combine(y, c, x, s, exact_products)};
      for (int i = 0; i < 2; ++i) {
        const std::int64_t column = i == 0 ? first : second;
        if (main) {
          out[i] = turned[i];
        } else {
          others.push_back({column, turned[i]});
        }
      }
      main = false;
    }
  }
}

}  // namespace

void rope(Row& row, std::span<const double> cos, std::span<const double> sin, bool interleaved, bool exact_products) {
  const auto half = static_cast<std::int64_t>(cos.size());
  std::vector<Other> others;
  for (std::int64_t i = 0; i < half; ++i) {
    const std::int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + half;
    const double c = cos[static_cast<std::size_t>(i)], s = sin[static_cast<std::size_t>(i)];
    Interval turned[2];
    if (row.others.empty()) [[likely]] {
      turned[0] = combine(row.at(first), c, row.at(second), -s, exact_products);
      turned[1] = combine(row.at(second), c, row.at(first), s, exact_products);
    } else {
      turn_sets(row, first, second, c, s, exact_products, turned, others);
    }
    for (int j = 0; j < 2; ++j) {
      const std::int64_t column = j == 0 ? first : second;
      row.set(column, turned[j]);
      if (turned[j].error == infinity) others.push_back({column, {nan, 0}});
    }
  }
  for (const Other& other : row.others) {
    if (other.column >= 2 * half) others.push_back(other);
  }
  std::stable_sort(others.begin(), others.end(), [](const Other& a, const Other& b) { return a.column < b.column; });
  row.others = std::move(others);
}

}  // namespace dcpcheck::reference
