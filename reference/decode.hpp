// Reads input tensors out of their storage, by the plan's strides, as fp64 numbers or integers.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "harness/core/inputs.hpp"
#include "harness/core/plan.hpp"

namespace dcpcheck::reference {

// One input tensor. The plan and the inputs must outlive it.
class Reader {
 public:
  Reader(const Plan& plan, const Inputs& inputs, std::string_view name, std::int64_t rank)
      : tensor_(plan.tensor(name)), data_(inputs.get(name, rank).data()) {}

  std::int64_t rows() const { return tensor_.rows(); }
  std::int64_t columns() const { return tensor_.columns(); }

  // Element `i` of axis 0 of a tensor of integers, or element `column` of its row `i`.
  std::int64_t integer(std::int64_t i, std::int64_t column = 0) const {
    const std::int64_t at = element(i, column);
    return tensor_.dtype == DType::i64 ? load<std::int64_t>(at) : load<std::int32_t>(at);
  }

  // Element `i` of axis 0 of a tensor of bf16 or fp32; exact.
  double number(std::int64_t i, std::int64_t column = 0) const { return widen(element(i, column)); }

  // Row `row`, all its columns; a tensor of one axis read whole.
  void read_row(std::int64_t row, std::vector<double>& out) const {
    const std::int64_t count = tensor_.shape.size() < 2 ? rows() : columns();
    out.resize(static_cast<std::size_t>(count));
    const bool flat = tensor_.shape.size() < 2;
    const std::int64_t first = flat ? tensor_.offset : element(row, 0);
    const std::int64_t step = tensor_.strides.empty() ? 1 : tensor_.strides.back();
    for (std::int64_t i = 0; i < count; ++i) out[static_cast<std::size_t>(i)] = widen(first + i * step);
  }
  // Row `j` of step `i` of a tensor of three axes.
  void read_row(std::int64_t i, std::int64_t j, std::vector<double>& out) const {
    out.resize(static_cast<std::size_t>(tensor_.shape[2]));
    const std::int64_t first = element(i, j);
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = widen(first + static_cast<std::int64_t>(k) * tensor_.strides[2]);
  }
  std::vector<double> all() const {
    std::vector<double> out;
    read_row(0, out);
    return out;
  }

 private:
  std::int64_t element(std::int64_t i, std::int64_t column) const {
    const auto& strides = tensor_.strides;
    return tensor_.offset + (strides.empty() ? 0 : i * strides[0]) + (strides.size() < 2 ? 0 : column * strides[1]);
  }
  template <class T>
  T load(std::int64_t at) const {
    T value;
    std::memcpy(&value, data_ + at * static_cast<std::int64_t>(sizeof(T)), sizeof value);
    return value;
  }
  // bf16 is the upper half of an fp32 number.
  double widen(std::int64_t at) const {
    return tensor_.dtype == DType::bf16 ? std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(at)} << 16) : load<float>(at);
  }

  const TensorPlan& tensor_;
  const std::byte* data_;
};

// Rows of an input, one at a time.
class InputRows {
 public:
  InputRows(const Plan& plan, const Inputs& inputs, std::string_view name, std::int64_t rank)
      : reader_(plan, inputs, name, rank) {}
  std::span<const double> row(std::int64_t i) {
    reader_.read_row(i, scratch_);
    return scratch_;
  }
  // Row `j` of step `i` of a tensor of three axes.
  std::span<const double> row(std::int64_t i, std::int64_t j) {
    reader_.read_row(i, j, scratch_);
    return scratch_;
  }

 private:
  Reader reader_;
  std::vector<double> scratch_;
};

}  // namespace dcpcheck::reference
