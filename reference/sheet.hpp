// An output's admissible values while its rows are worked out, by several threads.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "harness/oracle/admissible.hpp"
#include "reference/row.hpp"

namespace dcpcheck::reference {

class Sheet {
 public:
  Sheet(std::int64_t rows, std::int64_t columns) : others_(static_cast<std::size_t>(rows)) {
    result_.rows = rows;
    result_.columns = columns;
    result_.value.resize(static_cast<std::size_t>(rows * columns));
    result_.error.resize(static_cast<std::size_t>(rows * columns));
  }

  // Only `rows` are put, and the others are not known.
  void know_only(const std::vector<std::int64_t>& rows) {
    result_.rows_known.assign(static_cast<std::size_t>(result_.rows), false);
    for (const std::int64_t row : rows) result_.rows_known[static_cast<std::size_t>(row)] = true;
  }

  // Rows are independent: threads may put different ones at the same time.
  void put(std::int64_t row, const Row& source) {
    std::copy(source.value.begin(), source.value.end(), result_.value.begin() + row * result_.columns);
    std::copy(source.error.begin(), source.error.end(), result_.error.begin() + row * result_.columns);
    others_[static_cast<std::size_t>(row)] = source.others;
  }

  // The finished values; the sheet is empty afterwards.
  Admissible take() {
    for (std::size_t row = 0; row < others_.size(); ++row) {
      for (const Other& other : others_[row]) {
        const std::int64_t element = static_cast<std::int64_t>(row) * result_.columns + other.column;
        result_.alternatives.push_back({element, other.interval.value, other.interval.error});
      }
    }
    return std::move(result_);
  }

 private:
  Admissible result_;
  std::vector<std::vector<Other>> others_;
};

}  // namespace dcpcheck::reference
