// One query's attention, with what fp32 may do to it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/row.hpp"

namespace dcpcheck::reference {

// The numbers that keys and values are made of, bf16, a row each; and what of them is the same for all queries. Heads share
// them: each has columns of its own, and some have the same.
class KeyRows {
 public:
  // Room for `rows` rows of so many numbers.
  KeyRows(std::int64_t key_columns, std::int64_t value_columns, std::int64_t rows);

  // The next row. `begins`: it is its request's first.
  void add(std::span<const double> keys, std::span<const double> values, bool begins);

  std::int64_t value_columns() const { return value_columns_; }

  // Keys lie in panels of as many rows: column d of all of a panel's rows, then column d + 1.
  static constexpr std::int64_t kPanel = 32;
  const double* panel(std::int64_t i) const { return keys_.data() + i * kPanel * key_columns_; }
  const double* value(std::int64_t row) const { return values_.data() + row * value_columns_; }
  // By column, over the values from their request's first to that of `row`: the sum of magnitudes, and the largest.
  const double* total(std::int64_t row) const { return totals_.data() + row * value_columns_; }
  const double* most(std::int64_t row) const { return mosts_.data() + row * value_columns_; }

 private:
  std::int64_t key_columns_, value_columns_, rows_ = 0;
  std::vector<double> keys_, values_, totals_, mosts_;
};

// Which columns of the rows a head has.
struct HeadColumns {
  std::int64_t key = 0, nope = 0;    // the first of the key's own part, and how many
  std::int64_t roped = 0, rope = 0;  // of the part behind it, which all heads share
  std::int64_t value = 0, width = 0;
};

// One head's attention over the rows, a query at a time.
class HeadAttention {
 public:
  HeadAttention(const KeyRows& rows, const HeadColumns& head, const Arithmetic& how) : rows_(rows), head_(head), how_(how) {}

  // softmax(q k_j / sqrt(width of q)) v over `count` rows from `first` on, which is its request's first; q are fp32
  // numbers. Puts the output into columns head * width … of `out`, width being that of a value, and the log-sum-exp of the
  // scores, to base e, into column `head` of `lse`; (0, -inf) where there are no rows. Heads must come in their order.
  void attend(std::span<const double> q, std::int64_t first, std::int64_t count, std::int64_t head, Row& out, Row& lse);

 private:
  void multiply(std::span<const double> q, const double* panel, std::int64_t begin, std::int64_t end);
  bool make_scores(std::span<const double> q, std::int64_t first, std::int64_t count);
  std::int64_t rescalings() const;
  void weigh_values(std::int64_t first);
  void spread_values(std::int64_t first);

  const double* row_value(std::int64_t row) const { return rows_.value(row) + head_.value; }
  bool adds_exactly(std::int64_t first, std::int64_t count, std::int64_t column) const;
  double mean(std::int64_t first, std::int64_t count, std::int64_t column) const;

  const KeyRows& rows_;
  HeadColumns head_;
  Arithmetic how_;
  // By key of a panel.
  double sums_[KeyRows::kPanel] = {}, magnitudes_[KeyRows::kPanel] = {};
  // By key. `spread` is the weight times its relative error.
  std::vector<double> scores_, errors_, weights_, spreads_;
  // By column of the value.
  std::vector<double> value_, magnitude_, distance_;
};

}  // namespace dcpcheck::reference
