#include "harness/oracle/ranges.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness/oracle/narrow.hpp"
#include "harness/oracle/rounding.hpp"

namespace dcpcheck {
namespace {

constexpr std::int64_t e4m3_overflow = 0x7F;  // the order of magnitudes that round past 448

struct Span {
  double low, high;
};

// [value - error, value + error], a hair wider than the two fp64 operations that form it can be wrong by (2^-53 of
// each end). An error of 0 says that the value is exact, and stays so.
Span span_of(double value, double error) {
  if (std::isinf(value) || error == 0) return {value, value};
  if (!(error < rounding::infinity)) return {-rounding::infinity, rounding::infinity};
  const double reach = error + (std::abs(value) + error) * 0x1p-52;
  return {value - reach, value + reach};
}

std::int64_t signed_order(std::uint8_t code) { return order_e4m3(code); }

// Cuts an e4m3 range at the largest finite codes, as the contract says what lies past them becomes.
void add_e4m3(CodeSet& set, CodeRange range, const E4m3Policy& policy) {
  if (policy.saturate) {
    range.low = std::clamp<std::int64_t>(range.low, -0x7E, 0x7E);
    range.high = std::clamp<std::int64_t>(range.high, -0x7E, 0x7E);
  } else {
    if (range.high >= e4m3_overflow || range.low <= -e4m3_overflow) set.nan = true;
    range.low = std::max<std::int64_t>(range.low, -0x7E);
    range.high = std::min<std::int64_t>(range.high, 0x7E);
  }
  if (range.low <= range.high) set.add(range);
}

void add_nan(CodeSet& set, const Comparison& how) {
  if (how.dtype != DType::e4m3 || !how.e4m3.clamp_nan) {
    set.nan = true;
    return;
  }
  // A min/max clamp gave back one of its bounds.
  set.add({-0x7E, -0x7E});
  set.add({0x7E, 0x7E});
}

// Codes against a stored scale of 0 or infinity, where the quotient is not continuous.
CodeSet codes_at_odd_scale(const Span& t, const Comparison& how, float scale) {
  CodeSet set;
  const bool flip = std::signbit(scale);
  if (std::isinf(scale)) {
    // Infinite as fp32, which is what the kernel divides: an end past fp32's largest is.
    const bool low = std::isinf(narrow_fp32(t.low)), high = std::isinf(narrow_fp32(t.high));
    if (low || high) add_nan(set, how);
    if (!(low && high && std::signbit(t.low) == std::signbit(t.high))) {
      set.add({0, 0, flip ? t.low <= 0 : t.high >= 0, flip ? t.high >= 0 : t.low <= 0});
    }
    return set;
  }
  if (t.low <= 0 && t.high >= 0) add_nan(set, how);
  CodeRange past{-e4m3_overflow, -e4m3_overflow};
  const bool below = flip ? t.high > 0 : t.low < 0, above = flip ? t.low < 0 : t.high > 0;
  if (how.e4m3.clamp_nan && set.count == 2) return set;  // ±448 are in it already
  if (below) add_e4m3(set, past, how.e4m3);
  past = {e4m3_overflow, e4m3_overflow};
  if (above) add_e4m3(set, past, how.e4m3);
  return set;
}

CodeSet e4m3_codes(const Span& t, const Comparison& how, float scale) {
  if (std::isnan(scale)) {
    CodeSet set;
    add_nan(set, how);
    return set;
  }
  if (scale == 0 || std::isinf(scale)) return codes_at_odd_scale(t, how, scale);
  const bool flip = scale < 0;
  // t and scale are fp32, so fp64's quotient rounded to fp32 is fp32's own (53 >= 2 * 24 + 2), and both roundings are
  // monotone: the ends of the interval bound whatever lies between.
  double low = (flip ? t.high : t.low) / scale, high = (flip ? t.low : t.high) / scale;
  if (how.full_division) {
    constexpr double two_ulps = 4 * 0x1p-24 * (1 + 0x1p-20);
    low -= std::isfinite(low) ? std::abs(low) * two_ulps : 0;
    high += std::isfinite(high) ? std::abs(high) * two_ulps : 0;
  }
  CodeRange range;
  range.low = signed_order(rounding::to_e4m3_unlimited(narrow_fp32(low)));
  range.high = signed_order(rounding::to_e4m3_unlimited(narrow_fp32(high)));
  range.plus_zero = flip ? t.low <= 0 : t.high >= 0;
  range.minus_zero = flip ? t.high >= 0 : t.low <= 0;
  CodeSet set;
  add_e4m3(set, range, how.e4m3);
  return set;
}

}  // namespace

CodeSet admissible_codes(double value, double error, const Comparison& how, float scale) {
  CodeSet set;
  if (std::isnan(value)) {
    add_nan(set, how);
    return set;
  }
  const Span t = span_of(value, error);
  if (how.dtype == DType::e4m3) return e4m3_codes(t, how, scale);
  const auto order = [&](double end) {
    return how.dtype == DType::bf16 ? std::int64_t{order_bf16(narrow_bf16(end))} : order_fp32(narrow_fp32(end));
  };
  set.add({order(t.low), order(t.high), t.high >= 0, t.low <= 0});
  return set;
}

Decoded decode(const std::byte* code, DType dtype) {
  Decoded result;
  if (dtype == DType::bf16) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, code, sizeof bits);
    result = {(bits & 0x7FFF) > 0x7F80, (bits & 0x8000) != 0, order_bf16(bits)};
  } else if (dtype == DType::e4m3) {
    const auto bits = static_cast<std::uint8_t>(*code);
    result = {(bits & 0x7F) == 0x7F, (bits & 0x80) != 0, order_e4m3(bits)};
  } else {
    float number = 0;
    std::memcpy(&number, code, sizeof number);
    result = {std::isnan(number), std::signbit(number), order_fp32(number)};
  }
  return result;
}

double value_at(std::int64_t order, DType dtype) {
  const auto magnitude = static_cast<std::uint32_t>(std::abs(order));
  double value = 0;
  if (dtype == DType::bf16) {
    value = magnitude >= 0x7F80 ? 0x1p128 : widen_bf16(static_cast<std::uint16_t>(magnitude));
  } else if (dtype == DType::e4m3) {
    value = magnitude >= 0x7F ? 480 : widen_e4m3(static_cast<std::uint8_t>(magnitude));
  } else {
    value = magnitude >= 0x7F800000 ? 0x1p128 : std::bit_cast<float>(magnitude);
  }
  return order < 0 ? -value : value;
}

}  // namespace dcpcheck
