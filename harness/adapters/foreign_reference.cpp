#include "harness/adapters/foreign_reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/core/bf16.hpp"
#include "harness/core/e4m3.hpp"
#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

// One output, or one field of a cache's records, that the reference is to tell.
struct Asked {
  std::string name;
  DType dtype = DType::u8;
  Told told = Told::value;
  std::int64_t rows = 0, columns = 0;
  std::int64_t judged = 0;                   // rows; those of padding tokens are not
  std::span<const std::byte> first, second;  // value and error, low and high, or exact alone
};

Told told_of(Told said, DType dtype) { return is_float(dtype) ? said : Told::exact; }

std::vector<Asked> asked_of(const Plan& plan) {
  std::vector<Asked> asked;
  for (const TensorPlan& tensor : plan.tensors) {
    if (tensor.role == Role::out && !tensor.unjudged)
      asked.push_back({tensor.name,
                       tensor.dtype,
                       told_of(tensor.spec->told, tensor.dtype),
                       tensor.rows(),
                       tensor.columns(),
                       tensor.spec->rows == Rows::live ? std::min(plan.live, tensor.rows()) : tensor.rows(),
                       {},
                       {}});
    if (tensor.role != Role::cache || tensor.slot_mapping.empty()) continue;
    for (const FieldPlan& field : tensor.cache.fields)
      asked.push_back({tensor.name + "." + field.name,
                       field.dtype,
                       told_of(field.told, field.dtype),
                       plan.tokens,
                       field.count,
                       plan.live,
                       {},
                       {}});
  }
  return asked;
}

// The launch that asks: the inputs of the case, and what is to be told, in the place of its outputs and like these in one
// arena.
class Question {
 public:
  Question(const Plan& plan, const Inputs& inputs, std::int64_t rank, std::vector<Asked>& asked) : plan_(plan) {
    plan_.tensors.clear();
    for (const TensorPlan& tensor : plan.tensors) {
      if (tensor.role != Role::in) continue;
      // A kernel may not write to its inputs, a reference neither: views have no const.
      auto* const storage = const_cast<std::byte*>(inputs.get(tensor.name, rank).data());
      add(tensor, storage + tensor.offset * size_of(tensor.dtype));
    }
    std::int64_t bytes = 0;
    for (const Asked& one : asked) bytes += 2 * room_of(one);
    arena_.resize(static_cast<std::size_t>(bytes));
    for (Asked& one : asked) {
      if (one.told == Told::exact) one.first = add(one, ".exact", one.dtype);
      if (one.told == Told::range) {
        one.first = add(one, ".low", one.dtype);
        one.second = add(one, ".high", one.dtype);
      }
      if (one.told == Told::value) {
        one.first = add(one, ".value", DType::fp64);
        one.second = add(one, ".error", DType::fp64);
      }
    }
  }

  Launch launch(std::int64_t rank, int threads) { return {plan_, rank, views_, threads, nullptr, arena_}; }

 private:
  static constexpr std::int64_t kAlignment = 64;

  // Of one of the two, with what aligns the next; some where there are no elements too, so that it has an address.
  static std::int64_t room_of(const Asked& one) {
    return (one.rows * one.columns * size_of(DType::fp64) / kAlignment + 1) * kAlignment;
  }

  void add(const TensorPlan& tensor, std::byte* data) {
    views_[tensor.name] = {data, tensor.dtype, tensor.shape, tensor.strides};
    plan_.tensors.push_back(tensor);
  }

  std::span<const std::byte> add(const Asked& one, const char* suffix, DType dtype) {
    TensorPlan tensor;
    tensor.name = one.name + suffix;
    tensor.role = Role::out;
    tensor.dtype = dtype;
    tensor.shape = {one.rows, one.columns};
    tensor.strides = {one.columns, 1};
    tensor.storage_elements = one.rows * one.columns;
    const std::span<std::byte> storage =
        std::span(arena_).subspan(static_cast<std::size_t>(used_), static_cast<std::size_t>(tensor.bytes()));
    used_ += room_of(one);
    // NaN, or an integer that is hardly right: what the reference leaves out does not pass for an answer.
    std::fill(storage.begin(), storage.end(), one.told == Told::exact ? std::byte{0xA5} : std::byte{0xFF});
    add(tensor, storage.data());
    return storage;
  }

  Plan plan_;
  std::map<std::string, View, std::less<>> views_;
  Bytes arena_;
  std::int64_t used_ = 0;
};

template <class T>
T load(std::span<const std::byte> from, std::int64_t index) {
  T value;
  std::memcpy(&value, from.data() + index * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

double decoded(std::span<const std::byte> codes, std::int64_t index, DType dtype) {
  if (dtype == DType::bf16) return decode_bf16(load<std::uint16_t>(codes, index));
  if (dtype == DType::e4m3) return decode_e4m3(load<std::uint8_t>(codes, index));
  return load<float>(codes, index);
}

[[noreturn]] void wrong(const Plan& plan, const Asked& one, std::int64_t element, const std::string& what) {
  throw HarnessError("the reference of " + plan.op->name + " tells of " + one.name + ", element [" +
                     std::to_string(element / one.columns) + ", " + std::to_string(element % one.columns) + "], " + what);
}

Admissible by_value(const Plan& plan, const Asked& one) {
  Admissible told;
  for (std::int64_t i = 0; i < one.rows * one.columns; ++i) {
    told.value.push_back(load<double>(one.first, i));
    const bool judged = i / one.columns < one.judged;
    const double error = judged ? load<double>(one.second, i) : 0;
    told.error.push_back(error);
    if (!(error >= 0)) wrong(plan, one, i, "an error that is " + std::string(error < 0 ? "negative" : "no number"));
  }
  return told;
}

// The middle and half the width: what is narrowed from their difference and sum are the two ends again.
Admissible by_range(const Plan& plan, const Asked& one) {
  Admissible told;
  for (std::int64_t i = 0; i < one.rows * one.columns; ++i) {
    const double low = decoded(one.first, i, one.dtype), high = decoded(one.second, i, one.dtype);
    if (i / one.columns >= one.judged) {
      told.value.push_back(low);
      told.error.push_back(0);
      continue;
    }
    if (std::isnan(low) != std::isnan(high)) wrong(plan, one, i, "one end that is NaN, and another that is not");
    if (low > high) wrong(plan, one, i, "a low above its high");
    const bool single = std::isnan(low) || low == high;
    if (!single && (std::isinf(low) || std::isinf(high))) wrong(plan, one, i, "a range with an infinite end");
    const double middle = low / 2 + high / 2;
    told.value.push_back(single ? low : middle);
    told.error.push_back(single ? 0 : std::max(middle - low, high - middle));
  }
  return told;
}

Admissible told_by(const Plan& plan, const Asked& one) {
  Admissible told = one.told == Told::value   ? by_value(plan, one)
                    : one.told == Told::range ? by_range(plan, one)
                                              : Admissible{};
  told.rows = one.rows;
  told.columns = one.columns;
  if (one.told != Told::exact) return told;
  told.exact = true;
  told.codes.assign(one.first.begin(), one.first.end());
  return told;
}

}  // namespace

Reference reference_of(const Kernel& kernel, const Op& op) {
  if (kernel.op != op.name)
    throw InputError(kernel.name + ": it is named as the reference of " + op.name + ", but is a kernel of " + kernel.op);
  if (!kernel.host)
    throw InputError(kernel.name + ": it is named as the reference of " + op.name +
                     ", which must run on the host, but runs on CUDA alone");
  return [kernel](const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options) {
    std::vector<Asked> asked = asked_of(plan);
    Question question(plan, inputs, rank, asked);
    const LaunchError error = kernel.host(question.launch(rank, options.threads));
    if (!error.empty())
      throw HarnessError("the reference of " + plan.op->name + ", " + kernel.name + ", did not answer: " + error.why);
    Expected expected;
    for (const Asked& one : asked) expected.emplace(one.name, told_by(plan, one));
    return expected;
  };
}

}  // namespace dcpcheck
