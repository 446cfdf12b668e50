// For laws of merges: the partial results that a case merges, whatever op it is of. Inputs by the recipe "partials:<lse>" are
// the parts' outputs, those that they name their LSEs; with an axis of parts before that of tokens, or a tensor a part. The
// merged outputs are `out` and `lse`.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "harness/core/recipe.hpp"
#include "properties/observe.hpp"

namespace dcpcheck::laws {

struct PartOfMerge {
  const TensorPlan* out = nullptr;
  const TensorPlan* lse = nullptr;
  std::int64_t index = -1;  // on the first axis; -1: the tensors are the part's alone
};

inline std::vector<PartOfMerge> parts_of(const Plan& plan) {
  std::vector<PartOfMerge> parts;
  for (const TensorPlan& tensor : plan.tensors) {
    if (tensor.role != Role::in) continue;
    // The op's own recipe: a case may fill the parts otherwise.
    const Recipe recipe = parse_recipe(tensor.spec->values);
    if (recipe.kind != Recipe::Kind::partials) continue;
    const TensorPlan* const lse = &plan.tensor(recipe.argument);
    const bool own = tensor.spec->shape.front().text() == "T";
    for (std::int64_t i = own ? -1 : 0; i < (own ? 0 : tensor.shape.front()); ++i) parts.push_back({&tensor, lse, i});
  }
  return parts;
}

// The floats of one token of a part: heads, or heads times their width.
class PartRow {
 public:
  PartRow(Inputs& inputs, const TensorPlan& tensor, std::int64_t part, std::int64_t token)
      : data_(inputs.shared.at(tensor.name).data()) {
    const std::size_t axis = part < 0 ? 0 : 1;
    first_ = tensor.offset + (part < 0 ? 0 : part * tensor.strides[0]) + token * tensor.strides[axis];
    count_ = axis + 1 < tensor.shape.size() ? tensor.shape[axis + 1] : 1;
  }
  std::int64_t size() const { return count_; }
  void set(std::int64_t i, float value) { std::memcpy(at(i), &value, sizeof value); }
  float get(std::int64_t i) const {
    float value = 0;
    std::memcpy(&value, at(i), sizeof value);
    return value;
  }

 private:
  std::byte* at(std::int64_t i) const { return data_ + static_cast<std::size_t>(first_ + i) * sizeof(float); }
  std::byte* data_;
  std::int64_t first_ = 0, count_ = 0;
};

inline float float_at(const Bytes& row, std::int64_t i) {
  float value = 0;
  std::memcpy(&value, row.data() + static_cast<std::size_t>(i) * sizeof value, sizeof value);
  return value;
}

}  // namespace dcpcheck::laws
