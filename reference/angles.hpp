// Rope tables as inputs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "harness/core/error.hpp"
#include "reference/decode.hpp"
#include "reference/rope.hpp"

namespace dcpcheck::reference {

// A rope table: cos | sin, a row a position.
class Angles {
 public:
  Angles(const Plan& plan, const Inputs& inputs, std::string_view name, std::int64_t rank)
      : rows_(plan, inputs, name, rank),
        op_(plan.op->name),
        count_(plan.tensor(name).rows()),
        bf16_(plan.tensor(name).dtype == DType::bf16) {}
  // Turns the first elements of `row`, a live token's. bf16_inputs: they are bf16 numbers.
  void turn(Row& row, std::int64_t position, bool interleaved, bool bf16_inputs) {
    if (position < 0 || position >= count_) {
      throw HarnessError(op_ + ": position " + std::to_string(position) + " of a live token is past the rope table's " +
                         std::to_string(count_) + " rows");
    }
    const std::span<const double> both = rows_.row(position);
    rope(row, both.first(both.size() / 2), both.last(both.size() / 2), interleaved, bf16_ && bf16_inputs);
  }

 private:
  InputRows rows_;
  std::string op_;
  std::int64_t count_;
  bool bf16_;
};

}  // namespace dcpcheck::reference
