// What the generators of a case's fields share (geometry_steps.cpp, field_steps.cpp, put together in generators.cpp): the
// case in the making, which buckets are asked for, and what a generator says of itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/plan.hpp"
#include "properties/buckets.hpp"
#include "properties/dice.hpp"
#include "properties/facts.hpp"

namespace dcpcheck {

struct Draft {
  Case value;
  std::int64_t longest = 64;  // tokens of a request, where its length is free
  std::int64_t launch = 0;    // rows that the launch is to have; 0: as many as there come to be
  bool narrow = false;        // params that are free go to their plainest values
  bool dense = false;         // layouts that are free stay dense
  bool plain_values = false;  // recipes that are free stay the op's own
  bool missed = false;        // a bucket was missed in which the case must be
};

// By dimension and bucket, whether cases may be in it.
using Allowed = std::vector<std::vector<bool>>;

// Which bucket of a dimension to draw from: one that is asked for, or any that is allowed. Dimension -1, which the op has
// not, is never asked for.
class Pick {
 public:
  Pick(const Wishes& wishes, const Allowed& allowed, Dice& dice) : wishes_(&wishes), allowed_(&allowed), dice_(&dice) {}

  bool asked(int dimension) const { return wish(dimension) >= 0; }
  int must(int dimension) const { return dimension < 0 ? -1 : wishes_->must[static_cast<std::size_t>(dimension)]; }
  int wish(int dimension) const {
    const int must_be = must(dimension);
    return dimension < 0 || must_be >= 0 ? must_be : wishes_->may[static_cast<std::size_t>(dimension)];
  }
  bool allows(int dimension, int bucket) const {
    return dimension < 0 || (*allowed_)[static_cast<std::size_t>(dimension)][static_cast<std::size_t>(bucket)];
  }
  // The wish, else a bucket by these weights.
  int operator()(int dimension, std::vector<int> weights) const {
    if (asked(dimension)) return wish(dimension);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (!allows(dimension, static_cast<int>(i))) weights[i] = 0;
    }
    return std::max(dice_->weighted(weights), 0);
  }

 private:
  const Wishes* wishes_;
  const Allowed* allowed_;
  Dice* dice_;
};

// The numbers of an op's dimensions.
class Numbers {
 public:
  explicit Numbers(const std::vector<Dimension>& dimensions) : dimensions_(&dimensions) {}

  // -1: the op has none of that name.
  int operator()(const std::string& name) const {
    const auto found = std::find_if(dimensions_->begin(), dimensions_->end(),
                                    [&](const Dimension& dimension) { return dimension.name == name; });
    return found == dimensions_->end() ? -1 : static_cast<int>(found - dimensions_->begin());
  }
  std::vector<int> of(const GeometryDimensions& dimensions) const {
    std::vector<int> out;
    out.reserve(dimensions.size());
    for (const GeometryDimension& dimension : dimensions) out.push_back((*this)(dimension.name));
    return out;
  }

 private:
  const std::vector<Dimension>* dimensions_;
};

// The generator of one or some fields, given those that were drawn before it.
struct Step {
  std::vector<std::string> terms;  // the names in expressions whose value it decides
  std::vector<int> dimensions;     // whose buckets it draws from; -1 where the op has not the one
  std::function<void(Draft&, const Pick&, Dice&)> apply;
  bool geometry = false;
  const Param* param = nullptr;  // where it draws a param
  bool one_value = false;        // each of its buckets has but one value: drawn again, it comes to the same
};

// The generator of what is said of tensors: it needs to know their shapes.
using TensorStep = std::function<void(Draft&, const Plan&, const Pick&, Dice&)>;

// Those of the geometry, in an order in which each finds what it needs (geometry_steps.cpp).
std::vector<Step> geometry_steps(const Op& op, const Numbers& numbers);
// Those of the contract, of the params, and of how the kernel is launched (field_steps.cpp). All refer to `op`.
std::vector<Step> contract_steps(const Op& op, const Numbers& numbers);
std::vector<Step> param_steps(const Op& op, const Numbers& numbers);
std::vector<Step> launch_steps(const Numbers& numbers);
std::vector<TensorStep> tensor_steps(const Op& op, const Numbers& numbers);

}  // namespace dcpcheck
