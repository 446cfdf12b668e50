#include "harness/oracle/code_spans.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "harness/oracle/ranges.hpp"

namespace dcpcheck {
namespace {

// A code's place among all: magnitudes from +0 on as 0, 1, …, those from -0 on as -1, -2, ….
struct Places {
  std::int64_t low, high;
};

std::uint64_t code_at(std::int64_t place, DType dtype) {
  if (place >= 0) return static_cast<std::uint64_t>(place);
  return static_cast<std::uint64_t>(-place - 1) | std::uint64_t{1} << (8 * size_of(dtype) - 1);
}

// A range says of zero which of its two codes it holds; of all others an order has one.
Places places_of(const CodeRange& range) {
  const auto place = [](std::int64_t order) { return order < 0 ? order - 1 : order; };
  return {range.low == 0 && range.minus_zero ? -1 : place(range.low),
          range.high == 0 && !range.plus_zero ? -1 : place(range.high)};
}

void add(const CodeSet& set, std::vector<Places>& places, bool& nan) {
  nan = nan || set.nan;
  for (int i = 0; i < set.count; ++i) {
    const CodeRange& range = set.ranges[static_cast<std::size_t>(i)];
    if (range.low <= range.high) places.push_back(places_of(range));
  }
}

}  // namespace

std::uint64_t nan_code(DType dtype) { return dtype == DType::e4m3 ? 0x7F : dtype == DType::bf16 ? 0x7FC0 : 0x7FC00000; }

AdmissibleCodes admissible_spans(const Admissible& expected, std::int64_t index, const Comparison& how, float scale) {
  AdmissibleCodes out;
  if (expected.exact) {
    const std::int64_t size = size_of(how.dtype);
    const std::byte* const code = expected.codes.data() + index * size;
    out.nan = is_float(how.dtype) && decode(code, how.dtype).nan;
    CodeSpan one;
    std::memcpy(&one.low, code, static_cast<std::size_t>(size));  // little-endian, as all we run on
    one.high = one.low;
    if (!out.nan) out.spans.push_back(one);
    return out;
  }
  std::vector<Places> places;
  const auto at = static_cast<std::size_t>(index);
  add(admissible_codes(expected.value[at], expected.error[at], how, scale), places, out.nan);
  const auto less = [](const Alternative& a, std::int64_t element) { return a.element < element; };
  auto other = std::lower_bound(expected.alternatives.begin(), expected.alternatives.end(), index, less);
  for (; other != expected.alternatives.end() && other->element == index; ++other)
    add(admissible_codes(other->value, other->error, how, scale), places, out.nan);
  std::sort(places.begin(), places.end(), [](const Places& a, const Places& b) { return a.low < b.low; });
  std::vector<Places> apart;
  for (const Places& next : places) {
    if (!apart.empty() && next.low <= apart.back().high + 1) {
      apart.back().high = std::max(apart.back().high, next.high);
    } else {
      apart.push_back(next);
    }
  }
  for (const Places& span : apart) out.spans.push_back({code_at(span.low, how.dtype), code_at(span.high, how.dtype)});
  return out;
}

}  // namespace dcpcheck
