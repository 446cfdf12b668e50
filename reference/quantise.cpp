// Scales from the largest magnitude of a tile.
//
// Let [lo_i, hi_i] hold |element i|, L the largest lo_i. The largest magnitude is some element's and is at least L; it lies
// in the union of [max(lo_i, L), hi_i] over the i with hi_i >= L. Where elements are sets of intervals, so does each of
// their intervals, and L is taken of each element's least.
//
// fp32 rules are monotone in amax, and their one rounding is the judge's (division: fp64's quotient of two fp32 numbers
// rounded to fp32 is fp32's own; fp32_mul: the product has 48 bits and is exact in fp64).
//
// Powers of two: 448 = 1.75 * 2^8, so that the exponent steps up just above amax = 1.75 * 2^e, which is decided exactly.
// div.rn cannot blur it: the quotients of the fp32 neighbours of 1.75 * 2^e are nearer to the neighbours of 2^k than to
// 2^k. Under division `full` the quotient is within 4u, and the logarithm within 1 ulp (log2f) or 2^-22 (lg2.approx) of it.
#include <algorithm>
#include <cmath>

#include "reference/quantise.hpp"

namespace dcpcheck::reference {
namespace {

constexpr double largest_code = 448;
constexpr double fp32_min = 0x1p-126;
constexpr double floor_1e4 = static_cast<double>(1e-4F);  // both floors are fp32 constants

struct Span {
  double low = 0, high = 0;
};

Span magnitude_of(const Interval& interval) {
  if (std::isnan(interval.value)) return {0, 0};  // dropped by fmax
  const double value = std::abs(interval.value);
  if (std::isinf(value) || interval.error == 0) return {value, value};
  return {std::max(0.0, value - interval.error), value + interval.error};
}

// What amax may be: `main` holds what the reference's own values give.
struct Amax {
  double own = 0;
  Span main;
  std::vector<Span> others;
  bool unbounded = false;
};

Amax amax_of(const Row& values, std::int64_t begin, std::int64_t end) {
  Amax amax;
  double least = 0;  // L
  std::vector<Span> candidates;
  for (std::int64_t column = begin; column < end; ++column) {
    const Interval main = values.at(column);
    const Span span = magnitude_of(main);
    double low = span.low;
    if (!values.others.empty()) {
      for (const Other& other : values.others_of(column)) {
        const Span further = magnitude_of(other.interval);
        low = std::min(low, further.low);
        candidates.push_back(further);
        amax.unbounded |= further.high == infinity && other.interval.error == infinity;
      }
    }
    if (span.high == infinity && !std::isinf(main.value)) amax.unbounded = true;
    if (!std::isnan(main.value)) amax.own = std::max(amax.own, std::abs(main.value));
    least = std::max(least, low);
    amax.main.high = std::max(amax.main.high, span.high);
  }
  // Each element's own interval that reaches L starts below it or at it, unless one of its alternatives is smaller.
  if (candidates.empty()) {
    amax.main.low = least;
    return amax;
  }
  for (std::int64_t column = begin; column < end; ++column) candidates.push_back(magnitude_of(values.at(column)));
  std::sort(candidates.begin(), candidates.end(), [](const Span& a, const Span& b) { return a.low < b.low; });
  std::vector<Span> merged{{least, least}};
  bool first_used = false;
  for (const Span& candidate : candidates) {
    if (candidate.high < least) continue;
    const Span cut{std::max(candidate.low, least), candidate.high};
    first_used |= cut.low == least;
    if (cut.low <= merged.back().high) {
      merged.back().high = std::max(merged.back().high, cut.high);
    } else {
      merged.push_back(cut);
    }
  }
  if (!first_used) merged.erase(merged.begin());
  const auto own = std::find_if(merged.begin(), merged.end(),
                                [&](const Span& span) { return span.low <= amax.own && amax.own <= span.high; });
  const auto main = own == merged.end() ? merged.begin() : own;
  amax.main = *main;
  merged.erase(main);
  amax.others = std::move(merged);
  return amax;
}

// ceil(log2(amax / 448)) for finite amax > 0.
int exponent_of(double amax) {
  int exponent = 0;
  const double mantissa = std::frexp(amax, &exponent);  // in [1/2, 1); 448 = 0.875 * 2^9
  return exponent - 9 + (mantissa > 0.875 ? 1 : 0);
}

// Appends the column's first interval to row proper, the others as alternatives.
class ScaleColumn {
 public:
  ScaleColumn(Row& row, std::int64_t column) : row_(row), column_(column) {}
  void add(const Interval& interval) {
    if (first_) {
      row_.set(column_, interval);
    } else {
      row_.others.push_back({column_, interval});
    }
    first_ = false;
  }

 private:
  Row& row_;
  std::int64_t column_;
  bool first_ = true;
};

// What a range of amax gives under an fp32 rule, all of one piece.
void add_fp32(const Span& amax, ScaleRule rule, const Arithmetic& how, ScaleColumn& out) {
  const auto scale = [&](double magnitude, double stretch) {
    // fl(1/448) is 0x1.24924ap-9.
    const double quotient = rule == ScaleRule::fp32_mul ? magnitude * 0x1.24924ap-9 : magnitude / largest_code * stretch;
    return std::max(quotient, fp32_min);
  };
  const double reach = how.full_division && rule == ScaleRule::fp32_div ? 4 * u * slack : 0;
  // Past fp32's range a magnitude is infinite, and so is its scale.
  if (amax.low > fp32_max) return out.add({infinity, 0});
  const double low = scale(amax.low, 1 - reach), high = scale(std::min(amax.high, 0x1p128), 1 + reach);
  out.add(low == high ? Interval{low, 0} : Interval{(low + high) / 2, (high - low) / 2 * (1 + 0x1p-50)});
  if (amax.high > fp32_max) out.add({infinity, 0});
}

// Exponents of powers of two that a range of amax may give.
struct Exponents {
  int low, high;
};

Exponents exponents_of(const Span& amax, ScaleRule rule, const Arithmetic& how) {
  const double floor = rule == ScaleRule::ue8m0 ? floor_1e4 : 0x1p-100;
  const double low = std::max(amax.low, floor), high = std::min(std::max(amax.high, floor), 0x1p128);
  Exponents result{exponent_of(low), exponent_of(high)};
  if (how.full_division) {
    const auto window = [](int exponent) { return 4 * u + 0.7 * (std::abs(exponent) * 0x1p-23 + 0x1p-22); };
    result.low = exponent_of(low * (1 - window(result.low)));
    result.high = exponent_of(high * (1 + window(result.high)));
  }
  if (rule == ScaleRule::pow2) {
    const int least = std::ilogb(floor_1e4) + 1;  // 1e-4 is no power of two
    result.low = std::max(result.low, least);
    result.high = std::max(result.high, least);
  }
  return result;
}

void add_powers(const Amax& amax, ScaleRule rule, const Arithmetic& how, ScaleColumn& out) {
  std::vector<int> used;
  const auto add = [&](int exponent) {
    if (std::find(used.begin(), used.end(), exponent) != used.end()) return;
    used.push_back(exponent);
    out.add({std::ldexp(1.0, exponent), 0});
  };
  bool infinite = false;
  const auto add_range = [&](const Span& span) {
    infinite |= span.high > fp32_max;
    if (span.low > fp32_max) return;
    const Exponents range = exponents_of(span, rule, how);
    for (int exponent = range.low; exponent <= range.high; ++exponent) add(exponent);
  };
  if (amax.own <= fp32_max) {
    Arithmetic exactly = how;
    exactly.full_division = false;
    add(exponents_of({amax.own, amax.own}, rule, exactly).low);
  } else {
    out.add({infinity, 0});
  }
  add_range(amax.main);
  for (const Span& span : amax.others) add_range(span);
  if (infinite && amax.own <= fp32_max) out.add({infinity, 0});
}

}  // namespace

void tile_scales(const Row& values, std::int64_t tile, ScaleRule rule, const Arithmetic& how, Row& out) {
  const std::int64_t tiles = (values.columns() + tile - 1) / tile;
  out.reset(tiles);
  for (std::int64_t i = 0; i < tiles; ++i) {
    const Amax amax = amax_of(values, i * tile, std::min(values.columns(), (i + 1) * tile));
    if (amax.unbounded) {
      out.give_up(i);
      continue;
    }
    ScaleColumn column(out, i);
    if (rule == ScaleRule::fp32_div || rule == ScaleRule::fp32_mul) {
      add_fp32(amax.main, rule, how, column);
      for (const Span& span : amax.others) add_fp32(span, rule, how, column);
    } else {
      add_powers(amax, rule, how, column);
    }
  }
}

}  // namespace dcpcheck::reference
