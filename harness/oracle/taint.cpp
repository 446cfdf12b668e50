#include "harness/oracle/taint.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

// To the bit: the reference is one function, so the same inputs give the same bits.
bool same(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

bool same(const Alternative& a, const Alternative& b) {
  return a.element == b.element && same(a.value, b.value) && same(a.error, b.error);
}

// Marks the elements whose alternatives differ: both lists are sorted by element.
void mark_alternatives(const Admissible& a, const Admissible& b, std::vector<bool>& tainted) {
  std::size_t i = 0, j = 0;
  while (i < a.alternatives.size() || j < b.alternatives.size()) {
    const bool has_a = i < a.alternatives.size(), has_b = j < b.alternatives.size();
    if (has_a && has_b && same(a.alternatives[i], b.alternatives[j])) {
      ++i;
      ++j;
      continue;
    }
    const bool from_a = has_a && (!has_b || a.alternatives[i].element <= b.alternatives[j].element);
    tainted[static_cast<std::size_t>(from_a ? a.alternatives[i++].element : b.alternatives[j++].element)] = true;
  }
}

std::vector<bool> compare(const std::string& name, const Admissible& a, const Admissible& b) {
  if (a.rows != b.rows || a.columns != b.columns || a.exact != b.exact || a.codes.size() != b.codes.size() ||
      a.value.size() != b.value.size()) {
    throw HarnessError("the reference's answers on " + name + " are of two shapes");
  }
  const auto elements = static_cast<std::size_t>(a.rows * a.columns);
  std::vector<bool> tainted(elements, false);
  if (elements == 0) return tainted;
  if (a.exact) {
    const std::size_t size = a.codes.size() / elements;
    for (std::size_t i = 0; i < elements; ++i)
      tainted[i] = std::memcmp(a.codes.data() + i * size, b.codes.data() + i * size, size) != 0;
  } else {
    for (std::size_t i = 0; i < elements; ++i)
      tainted[i] = !same(a.value[i], b.value[i]) || !same(a.error[i], b.error[i]) || std::isinf(a.error[i]);
    mark_alternatives(a, b, tainted);
  }
  const auto columns = static_cast<std::size_t>(a.columns);
  for (const Admissible* side : {&a, &b}) {
    for (std::size_t row = 0; row < side->rows_known.size(); ++row) {
      if (side->rows_known[row]) continue;
      for (std::size_t column = 0; column < columns; ++column) tainted[row * columns + column] = true;
    }
  }
  return tainted;
}

}  // namespace

Taint taint_between(const Expected& a, const Expected& b) {
  Taint taint;
  for (const auto& [name, admissible] : a) {
    const auto other = b.find(name);
    if (other == b.end()) throw HarnessError("the reference says nothing of " + name + " on one of two inputs");
    std::vector<bool> tainted = compare(name, admissible, other->second);
    bool any = false;
    for (const bool one : tainted) any = any || one;
    if (any) taint.emplace(name, std::move(tainted));
  }
  return taint;
}

}  // namespace dcpcheck
