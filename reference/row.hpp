// One row of values, each with a bound on a kernel's error; and, where the contract rounds in the middle and more than
// one intermediate is right, the further intervals that come of the others.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/error_bounds.hpp"

namespace dcpcheck::reference {

// A kernel's fp32 value lies in [value - error, value + error]; NaN and infinite values are themselves.
struct Interval {
  double value = 0, error = 0;
};

struct Other {
  std::int64_t column = 0;
  Interval interval;
};

struct Row {
  std::vector<double> value, error;
  std::vector<Other> others;  // sorted by column

  std::int64_t columns() const { return static_cast<std::int64_t>(value.size()); }
  Interval at(std::int64_t column) const {
    return {value[static_cast<std::size_t>(column)], error[static_cast<std::size_t>(column)]};
  }
  void set(std::int64_t column, const Interval& interval) {
    value[static_cast<std::size_t>(column)] = interval.value;
    error[static_cast<std::size_t>(column)] = interval.error;
  }
  void reset(std::int64_t columns) {
    value.assign(static_cast<std::size_t>(columns), 0);
    error.assign(static_cast<std::size_t>(columns), 0);
    others.clear();
  }
  // Every element is exactly `number`.
  void fill(double number) {
    value.assign(value.size(), number);
    error.assign(value.size(), 0);
    others.clear();
  }
  // Any value at all may come out, NaN too: for intermediates that some right order takes past fp32's range.
  // `others` must then be appended to in the order of columns.
  void give_up(std::int64_t column) {
    set(column, {0, infinity});
    others.push_back({column, {nan, 0}});
  }
  void give_up() {
    others.clear();
    for (std::int64_t column = 0; column < columns(); ++column) give_up(column);
  }
  // The further intervals of `column`.
  std::span<const Other> others_of(std::int64_t column) const;
};

// Puts `part` into the columns of `row` from `first` on. Parts must come in the order of their columns.
void put_part(const Row& part, std::int64_t first, Row& row);

// Rounds every element to bf16 (contracts norm_round, pre_rope_round, pre_quant_round): each admissible code becomes an
// exact value of its own. Only where there are more than a handful is their hull kept instead.
void round_to_bf16(Row& row);

}  // namespace dcpcheck::reference
