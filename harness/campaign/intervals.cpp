#include "harness/campaign/intervals.hpp"

#include <algorithm>
#include <limits>

namespace dcpcheck {

void Intervals::add(std::uint64_t from, std::uint64_t to) {
  if (from >= to) return;
  auto at = ends_.upper_bound(from);
  if (at != ends_.begin()) {
    const auto before = std::prev(at);
    if (before->second >= from) {
      from = before->first;
      to = std::max(to, before->second);
      ends_.erase(before);
    }
  }
  while (at != ends_.end() && at->first <= to) {
    to = std::max(to, at->second);
    at = ends_.erase(at);
  }
  ends_[from] = to;
}

bool Intervals::contains(std::uint64_t number) const { return next_outside(number) != number; }

std::uint64_t Intervals::next_outside(std::uint64_t number) const {
  const auto after = ends_.upper_bound(number);
  if (after == ends_.begin()) return number;
  return std::max(number, std::prev(after)->second);
}

std::uint64_t Intervals::next_inside(std::uint64_t number) const {
  if (contains(number)) return number;
  const auto after = ends_.upper_bound(number);
  return after == ends_.end() ? std::numeric_limits<std::uint64_t>::max() : after->first;
}

}  // namespace dcpcheck
