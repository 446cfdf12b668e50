// One query's attention, with what fp32 may do to it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/row.hpp"

namespace dcpcheck::reference {

// A head's keys, bf16 numbers, a row each.
class HeadKeys {
 public:
  // Keys of `deep` numbers, and room for `rows` of them.
  HeadKeys(std::int64_t deep, std::int64_t rows);

  // The next row.
  void add(std::span<const double> key);

  // Keys lie in panels of as many rows: number d of all of a panel's keys, then number d + 1.
  static constexpr std::int64_t kPanel = 32;
  const double* panel(std::int64_t i) const { return keys_.data() + i * kPanel * deep_; }

 private:
  std::int64_t deep_, rows_ = 0;
  std::vector<double> keys_;
};

// A head's values, bf16 numbers, a row each; and what of them is the same for all queries.
class HeadValues {
 public:
  // Values of `width` numbers, and room for `rows` of them.
  HeadValues(std::int64_t width, std::int64_t rows);

  // The next row. `begins`: it is its request's first.
  void add(std::span<const double> value, bool begins);

  std::int64_t width() const { return width_; }

  const double* value(std::int64_t row) const { return values_.data() + row * width_; }
  // By column, over the values from their request's first to that of `row`: the sum of magnitudes, and the largest.
  const double* total(std::int64_t row) const { return totals_.data() + row * width_; }
  const double* most(std::int64_t row) const { return mosts_.data() + row * width_; }

 private:
  std::int64_t width_;
  std::vector<double> values_, totals_, mosts_;
};

// Attention over the rows of one head, a query at a time. Heads whose keys or values are the same numbers may share them.
class HeadAttention {
 public:
  HeadAttention(const HeadKeys& keys, const HeadValues& values, const Arithmetic& how)
      : keys_(keys), values_(values), how_(how) {}

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

  const HeadKeys& keys_;
  const HeadValues& values_;
  Arithmetic how_;
  // By key of a panel.
  double sums_[HeadKeys::kPanel] = {}, magnitudes_[HeadKeys::kPanel] = {};
  // By key. `spread` is the weight times its relative error.
  std::vector<double> scores_, errors_, weights_, spreads_;
  // By column of the value.
  std::vector<double> value_, magnitude_, distance_;
};

}  // namespace dcpcheck::reference
