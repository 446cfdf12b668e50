#include "harness/oracle/judge.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness/oracle/ranges.hpp"
#include "harness/oracle/rounding.hpp"

namespace dcpcheck {
namespace {

// Alternatives of elements [first, last), which are few: found only where an element is not its nearest code.
std::span<const Alternative> alternatives_of(const Admissible& expected, std::int64_t first, std::int64_t last) {
  const auto less = [](const Alternative& a, std::int64_t element) { return a.element < element; };
  const auto begin = std::lower_bound(expected.alternatives.begin(), expected.alternatives.end(), first, less);
  const auto end = std::lower_bound(begin, expected.alternatives.end(), last, less);
  return {begin, end};
}

bool same_exactly(const std::byte* expected, const std::byte* got, DType dtype) {
  if (std::memcmp(expected, got, static_cast<std::size_t>(size_of(dtype))) == 0) return true;
  return is_float(dtype) && decode(expected, dtype).nan && decode(got, dtype).nan;
}

// How far `value` is from the nearest real that becomes the code at `order`, as a part of the bound. An order that
// value itself becomes is at distance 0.
double fraction_of(double value, double error, std::int64_t order, bool negative, const Comparison& how, float scale) {
  if (!std::isfinite(value)) return rounding::infinity;
  const double divisor = how.dtype == DType::e4m3 ? scale : 1;
  if (!std::isfinite(divisor) || divisor == 0) return rounding::infinity;
  const CodeSet at_value = admissible_codes(value, 0, how, scale);
  if (at_value.count != 1) return rounding::infinity;  // a NaN past the range
  const std::int64_t nearest = at_value.ranges[0].low;
  double boundary = 0;
  if (order == nearest) {
    if (at_value.ranges[0].holds(order, negative)) return 0;
    // A zero of the other sign: 0 itself is the boundary.
  } else {
    const std::int64_t towards = order > nearest ? order - 1 : order + 1;
    boundary = (value_at(order, how.dtype) + value_at(towards, how.dtype)) / 2 * divisor;
  }
  const double distance = std::abs(boundary - value);
  const double bound = error + (how.full_division && how.dtype == DType::e4m3 ? 4 * 0x1p-24 * std::abs(value) : 0);
  return distance == 0 ? 0 : distance / bound;
}

// One interval's verdict on a code.
ElementJudgement judge_interval(double value, double error, const Decoded& code, const Comparison& how, float scale) {
  const CodeSet set = admissible_codes(value, error, how, scale);
  if (code.nan) return {set.nan, set.nan ? 0 : rounding::infinity};
  bool admitted = false;
  for (int i = 0; i < set.count; ++i) admitted |= set.ranges[static_cast<std::size_t>(i)].holds(code.order, code.negative);
  const double fraction = fraction_of(value, error, code.order, code.negative, how, scale);
  // The distance above is of reals; what decides is the codes of the interval's rounded ends.
  if (admitted) return {true, fraction < 1 ? fraction : std::isfinite(fraction) ? 1 : 0};
  return {false, std::max(fraction, std::nextafter(1.0, 2.0))};
}

// The full rule for one element of a float type with intervals.
ElementJudgement judge_slowly(const Admissible& expected, std::int64_t index, std::span<const Alternative> alternatives,
                              const std::byte* code, const Comparison& how, float scale) {
  const Decoded decoded = decode(code, how.dtype);
  const auto at = static_cast<std::size_t>(index);
  ElementJudgement best = judge_interval(expected.value[at], expected.error[at], decoded, how, scale);
  const auto less = [](const Alternative& a, std::int64_t element) { return a.element < element; };
  auto alternative = std::lower_bound(alternatives.begin(), alternatives.end(), index, less);
  for (; alternative != alternatives.end() && alternative->element == index; ++alternative) {
    const ElementJudgement other = judge_interval(alternative->value, alternative->error, decoded, how, scale);
    if (other.admitted != best.admitted ? other.admitted : other.fraction < best.fraction) best = other;
  }
  return best;
}

// Is `code` what the reference's own value becomes? The inner loop; false only means that judge_slowly must say.
bool is_nearest_bf16(double value, std::uint16_t code) { return rounding::to_bf16(value) == code; }

bool is_nearest_fp32(double value, std::uint32_t code) {
  return std::bit_cast<std::uint32_t>(rounding::to_fp32(value)) == code;
}

bool is_nearest_e4m3(double value, std::uint8_t code, double scale, bool saturate) {
  const float quotient = rounding::to_fp32(value / scale);
  if (std::isnan(quotient)) return false;
  std::uint8_t nearest = rounding::to_e4m3_unlimited(quotient);
  if (saturate && (nearest & 0x7F) == 0x7F) --nearest;
  return nearest == code;
}

// The columns of one row for which `nearest(value, code, column)` is not true are judged slowly.
template <class Code, class Nearest>
RowJudgement judge_columns(const Admissible& expected, std::int64_t row, const std::byte* codes, const Comparison& how,
                           std::span<const float> scales, std::int64_t tile,
                           const std::function<void(std::int64_t, double)>& report, Nearest nearest) {
  RowJudgement result;
  const std::int64_t first = row * expected.columns;
  const double* const values = expected.value.data() + first;
  std::span<const Alternative> alternatives;
  bool looked_up = false;
  const std::int64_t step = scales.empty() ? expected.columns : std::max<std::int64_t>(tile, 1);
  for (std::int64_t begin = 0; begin < expected.columns; begin += step) {
    const float scale = scales.empty() ? 1 : scales[static_cast<std::size_t>(begin / step)];
    const std::int64_t end = std::min(begin + step, expected.columns);
    for (std::int64_t column = begin; column < end; ++column) {
      const std::byte* const at = codes + column * static_cast<std::int64_t>(sizeof(Code));
      Code code{};
      std::memcpy(&code, at, sizeof code);
      if (nearest(values[column], code, scale)) [[likely]]
        continue;
      if (!looked_up) {
        alternatives = alternatives_of(expected, first, first + expected.columns);
        looked_up = true;
      }
      const ElementJudgement judged = judge_slowly(expected, first + column, alternatives, at, how, scale);
      if (!judged.admitted) {
        report(column, judged.fraction);
      } else if (judged.fraction > result.worst) {
        result = {judged.fraction, column};
      }
    }
  }
  return result;
}

}  // namespace

ElementJudgement judge_element(const Admissible& expected, std::int64_t index, const std::byte* code, const Comparison& how,
                               float scale) {
  if (expected.exact) {
    const bool same = same_exactly(expected.codes.data() + index * size_of(how.dtype), code, how.dtype);
    return {same, same ? 0 : rounding::infinity};
  }
  return judge_slowly(expected, index, alternatives_of(expected, index, index + 1), code, how, scale);
}

RowJudgement judge_row(const Admissible& expected, std::int64_t row, const std::byte* codes, const Comparison& how,
                       std::span<const float> scales, std::int64_t tile,
                       const std::function<void(std::int64_t column, double fraction)>& report) {
  if (expected.exact) {
    const std::int64_t size = size_of(how.dtype);
    const std::byte* const right = expected.codes.data() + row * expected.columns * size;
    if (std::memcmp(right, codes, static_cast<std::size_t>(expected.columns * size)) == 0) return {};
    for (std::int64_t column = 0; column < expected.columns; ++column) {
      if (!same_exactly(right + column * size, codes + column * size, how.dtype)) report(column, rounding::infinity);
    }
    return {};
  }
  switch (how.dtype) {
    case DType::bf16:
      return judge_columns<std::uint16_t>(expected, row, codes, how, {}, tile, report,
                                          [](double v, std::uint16_t c, float) { return is_nearest_bf16(v, c); });
    case DType::e4m3:
      return judge_columns<std::uint8_t>(
          expected, row, codes, how, scales, tile, report,
          [saturate = how.e4m3.saturate](double v, std::uint8_t c, float s) { return is_nearest_e4m3(v, c, s, saturate); });
    default:
      return judge_columns<std::uint32_t>(expected, row, codes, how, {}, tile, report,
                                          [](double v, std::uint32_t c, float) { return is_nearest_fp32(v, c); });
  }
}

}  // namespace dcpcheck
