// Codes and admissible sets as a person reads them.
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "harness/core/error.hpp"
#include "harness/oracle/ranges.hpp"

namespace dcpcheck {
namespace {

template <class... Args>
std::string text(const char* format, Args... args) {
  char buffer[96];
  const int length = std::snprintf(buffer, sizeof buffer, format, args...);
  if (length < 0 || length >= static_cast<int>(sizeof buffer)) throw HarnessError("a number could not be written as text");
  return buffer;
}

// The code at `order` of a float type, in hexadecimal.
std::string hex_at(std::int64_t order, bool negative, DType dtype) {
  const auto magnitude = static_cast<std::uint32_t>(std::abs(order));
  const int digits = static_cast<int>(2 * size_of(dtype));
  const std::uint32_t top = dtype == DType::fp32 ? 0x80000000U : dtype == DType::bf16 ? 0x8000U : 0x80U;
  const std::uint32_t sign = negative ? top : 0U;
  return text("0x%0*" PRIX32, digits, magnitude | sign);
}

std::string number_at(std::int64_t order, bool negative, DType dtype) {
  const std::int64_t infinite = dtype == DType::bf16 ? 0x7F80 : dtype == DType::fp32 ? 0x7F800000 : 0x80;
  if (std::abs(order) >= infinite) return order < 0 ? "-inf" : "inf";
  const double magnitude = std::abs(value_at(order, dtype));
  return text(dtype == DType::fp32 ? "%.9g" : "%.5g", negative ? -magnitude : magnitude);
}

std::string describe_range(const CodeRange& range, DType dtype) {
  const bool low_negative = range.low < 0 || (range.low == 0 && range.minus_zero);
  const bool high_negative = range.high < 0 || (range.high == 0 && !range.plus_zero);
  const std::string low = hex_at(range.low, low_negative, dtype), high = hex_at(range.high, high_negative, dtype);
  const std::string first = number_at(range.low, low_negative, dtype), last = number_at(range.high, high_negative, dtype);
  return low == high ? low + " (" + first + ")" : low + ".." + high + " (" + first + ".." + last + ")";
}

}  // namespace

std::string describe_code(const std::byte* code, DType dtype) {
  switch (dtype) {
    case DType::u8: return text("0x%02X", static_cast<unsigned>(*code));
    case DType::i32: {
      std::int32_t number = 0;
      std::memcpy(&number, code, sizeof number);
      return text("%" PRId32, number);
    }
    case DType::i64: {
      std::int64_t number = 0;
      std::memcpy(&number, code, sizeof number);
      return text("%" PRId64, number);
    }
    case DType::bf16:
    case DType::e4m3:
    case DType::fp32:
    case DType::fp64: break;
  }
  const Decoded decoded = decode(code, dtype);
  const std::string number = decoded.nan ? "NaN" : number_at(decoded.order, decoded.negative, dtype);
  return hex_at(decoded.order, decoded.negative, dtype) + " (" + number + ")";
}

std::string describe_admissible(const Admissible& expected, std::int64_t index, const Comparison& how, float scale) {
  if (expected.exact) return describe_code(expected.codes.data() + index * size_of(how.dtype), how.dtype);
  std::vector<std::string> parts;
  const auto add = [&](const std::string& part) {
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
  };
  const auto add_interval = [&](double value, double error) {
    const CodeSet set = admissible_codes(value, error, how, scale);
    for (int i = 0; i < set.count; ++i) add(describe_range(set.ranges[static_cast<std::size_t>(i)], how.dtype));
    if (set.nan) add("NaN");
  };
  add_interval(expected.value[static_cast<std::size_t>(index)], expected.error[static_cast<std::size_t>(index)]);
  for (const Alternative& alternative : expected.alternatives) {
    if (alternative.element == index) add_interval(alternative.value, alternative.error);
  }
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : " or ") + part;
  return all;
}

}  // namespace dcpcheck
