#include "reference/row.hpp"

#include <algorithm>

#include "harness/oracle/narrow.hpp"

namespace dcpcheck::reference {
namespace {

constexpr std::int32_t most_codes = 6;  // of one interval, kept one by one

double value_of_order(std::int32_t order) {
  const double magnitude = widen_bf16(static_cast<std::uint16_t>(std::abs(order)));
  return order < 0 ? -magnitude : magnitude;
}

// The bf16 codes that the interval can become, by order.
struct Codes {
  std::int32_t low, nearest, high;
};

Codes codes_of(const Interval& interval) {
  const auto [value, error] = interval;
  const auto order = [](double number) { return order_bf16(narrow_bf16(number)); };
  const std::int32_t nearest = order(value);
  if (std::isinf(value) || error == 0) return {nearest, nearest, nearest};
  if (!(error < infinity)) return {-0x7F80, nearest, 0x7F80};
  const double reach = error + (std::abs(value) + error) * 0x1p-52;
  return {order(value - reach), nearest, order(value + reach)};
}

void append_codes(const Interval& interval, std::vector<Interval>& out) {
  if (std::isnan(interval.value)) {
    out.push_back(interval);
    return;
  }
  const Codes codes = codes_of(interval);
  if (codes.high - codes.low >= most_codes) {
    const double low = value_of_order(codes.low), high = value_of_order(codes.high);
    out.push_back(std::isfinite(low) && std::isfinite(high) ? Interval{(low + high) / 2, (high - low) / 2 * slack}
                                                            : Interval{0, infinity});
    return;
  }
  out.push_back({value_of_order(codes.nearest), 0});
  for (std::int32_t order = codes.low; order <= codes.high; ++order) {
    if (order != codes.nearest) out.push_back({value_of_order(order), 0});
  }
}

bool same(const Interval& a, const Interval& b) {
  return (a.value == b.value && a.error == b.error) || (std::isnan(a.value) && std::isnan(b.value));
}

}  // namespace

std::span<const Other> Row::others_of(std::int64_t column) const {
  const auto first = std::lower_bound(others.begin(), others.end(), column,
                                      [](const Other& other, std::int64_t wanted) { return other.column < wanted; });
  auto last = first;
  while (last != others.end() && last->column == column) ++last;
  return {first, last};
}

void put_part(const Row& part, std::int64_t first, Row& row) {
  std::copy(part.value.begin(), part.value.end(), row.value.begin() + first);
  std::copy(part.error.begin(), part.error.end(), row.error.begin() + first);
  for (const Other& other : part.others) row.others.push_back({first + other.column, other.interval});
}

void round_to_bf16(Row& row) {
  std::vector<Other> others;
  std::vector<Interval> found, distinct;
  std::size_t next = 0;  // of row.others
  for (std::int64_t column = 0; column < row.columns(); ++column) {
    const Interval main = row.at(column);
    const bool alone = next == row.others.size() || row.others[next].column != column;
    if (alone && std::isnan(main.value)) continue;
    if (alone) {
      const Codes codes = codes_of(main);
      if (codes.low == codes.high) [[likely]] {
        row.set(column, {value_of_order(codes.nearest), 0});
        continue;
      }
    }
    found.clear();
    distinct.clear();
    append_codes(main, found);
    for (; next < row.others.size() && row.others[next].column == column; ++next)
      append_codes(row.others[next].interval, found);
    for (const Interval& interval : found) {
      if (std::none_of(distinct.begin(), distinct.end(), [&](const Interval& known) { return same(known, interval); })) {
        distinct.push_back(interval);
      }
    }
    row.set(column, distinct.front());
    for (std::size_t i = 1; i < distinct.size(); ++i) others.push_back({column, distinct[i]});
  }
  row.others = std::move(others);
}

}  // namespace dcpcheck::reference
