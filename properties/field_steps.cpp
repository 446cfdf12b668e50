// The generators of all fields outside the geometry.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "properties/draft.hpp"
#include "properties/ranges.hpp"

namespace dcpcheck {
namespace {

template <class Buckets>
std::vector<int> weights_of(const Buckets& buckets) {
  std::vector<int> weights;
  weights.reserve(buckets.size());
  for (const auto& bucket : buckets) weights.push_back(bucket.weight);
  return weights;
}

Step option_step(const Option& option, const Numbers& numbers) {
  const int number = numbers("contract." + option.name);
  std::vector<int> weights(option.values.size(), 1);
  weights.front() = 2;
  Step step;
  step.terms = {"option." + option.name};
  step.dimensions = {number};
  step.one_value = true;
  step.apply = [=, &option](Draft& draft, const Pick& pick, Dice&) {
    draft.value.contract[option.name] = option.values[static_cast<std::size_t>(pick(number, weights))];
  };
  return step;
}

Step plain_param_step(const Param& param, const Numbers& numbers) {
  const int number = numbers("param." + param.name);
  const std::vector<ValueBucket> buckets = buckets_of(param);
  const auto plainest = static_cast<std::size_t>(bucket_of(param, buckets, param.plainest));
  Step step;
  step.dimensions = {number};
  step.apply = [=, &param, weights = weights_of(buckets)](Draft& draft, const Pick& pick, Dice& dice) {
    // A large launch has the least widths, but any of the op's features.
    const bool narrow = draft.narrow && (draft.launch == 0 ? dice.one_in(2) : param.kind == Param::Kind::integer);
    std::vector<int> fitting = weights;
    if (narrow && pick.allows(number, static_cast<int>(plainest))) {
      fitting.assign(weights.size(), 0);
      fitting[plainest] = 1;
    }
    draft.value.params[param.name] = dice.of(buckets[static_cast<std::size_t>(pick(number, std::move(fitting)))].values);
  };
  return step;
}

// The rows of the rope tables: any that are enough, and sometimes just enough, so that the last row is read.
Step max_position_step(const Param& param, const Numbers& numbers) {
  const int number = numbers("param." + param.name), last = numbers("last_position");
  const std::vector<ValueBucket> buckets = buckets_of(param);
  Step step;
  step.dimensions = {number, last};
  step.apply = [=, &param, weights = weights_of(buckets)](Draft& draft, const Pick& pick, Dice& dice) {
    std::int64_t position = -1;
    for (const Request& request : draft.value.geometry.batch) {
      if (request.uncached > 0) position = std::max(position, request.cached + request.uncached - 1);
    }
    const std::int64_t least = std::clamp(position + 1, param.min, param.max);
    ParamValue& rows = draft.value.params[param.name];
    if (position >= 0 && pick(last, {draft.narrow ? 1 : 5, 1}) == 1) {
      rows = least;
      return;
    }
    std::vector<ParamValue> enough = buckets[static_cast<std::size_t>(pick(number, weights))].values;
    enough.erase(std::remove_if(enough.begin(), enough.end(),
                                [&](const ParamValue& value) { return std::get<std::int64_t>(value) < least; }),
                 enough.end());
    rows = enough.empty() ? ParamValue(std::min(least + dice.within(0, 100), param.max)) : dice.of(enough);
  };
  return step;
}

void add_layouts(std::vector<TensorStep>& steps, const Op& op, const TensorSpec& spec, const Numbers& numbers) {
  std::vector<std::string> names = {spec.name};
  if (spec.per_group) {
    names.clear();
    for (const std::string& group : groups_of(op)) names.push_back(spec.name + "." + group);
  }
  for (const std::string& name : names) {
    const int number = numbers("layout." + name);
    steps.emplace_back([=](Draft& draft, const Plan& plan, const Pick& pick, Dice& dice) {
      const TensorPlan* const tensor = plan.find(name);
      if (tensor == nullptr || !tensor->in_place_of.empty()) return;
      const int bucket = pick(number, draft.dense ? std::vector<int>{1, 0, 0, 0} : std::vector<int>{3, 2, 1, 3});
      const std::int64_t columns = tensor->columns();
      RowLayout rows;
      // A little wider, or a slice of twice the width, as a fused projection gives.
      const std::vector<std::int64_t> gaps = {1, 1, 2, 3, 8, 64, std::max<std::int64_t>(columns, 1)};
      if (bucket == 1 || bucket == 3) rows.stride = columns + dice.of(gaps);
      if (bucket == 2 || bucket == 3) rows.offset = dice.of(std::vector<std::int64_t>{1, 1, 2, 3, 8, 64});
      if (rows != RowLayout{}) draft.value.layout[name] = rows;
    });
  }
}

void add_values(std::vector<TensorStep>& steps, const Op& op, const TensorSpec& spec, const Numbers& numbers) {
  const int number = numbers("values." + spec.name);
  const std::vector<RecipeFamily> families = recipe_families(op, spec);
  std::vector<int> plain(families.size(), 0);
  plain.front() = 1;
  steps.emplace_back([=, &spec, weights = weights_of(families)](Draft& draft, const Plan& plan, const Pick& pick, Dice& dice) {
    if (plan.find(spec.name) == nullptr) return;
    const int family = pick(number, draft.plain_values ? plain : weights);
    const std::string& recipe = dice.of(families[static_cast<std::size_t>(family)].recipes);
    if (recipe != spec.values) draft.value.values[spec.name] = recipe;
  });
}

}  // namespace

std::vector<Step> contract_steps(const Op& op, const Numbers& numbers) {
  std::vector<Step> steps;
  steps.reserve(op.contract.size());
  for (const Option& option : op.contract) steps.push_back(option_step(option, numbers));
  return steps;
}

std::vector<Step> param_steps(const Op& op, const Numbers& numbers) {
  std::vector<Step> steps;
  for (const Param& param : op.params) {
    const bool rows = numbers("last_position") >= 0 && param.name == "max_position";
    steps.push_back(rows ? max_position_step(param, numbers) : plain_param_step(param, numbers));
    steps.back().terms = {param.name};
    steps.back().param = &param;
    steps.back().one_value = param.kind != Param::Kind::integer;
  }
  return steps;
}

std::vector<Step> launch_steps(const Numbers& numbers) {
  const int number = numbers("graph");
  Step graph;
  graph.dimensions = {number};
  graph.one_value = true;
  graph.apply = [=](Draft& draft, const Pick& pick, Dice&) { draft.value.graph = pick(number, {6, 1}) == 1; };
  return {std::move(graph)};
}

std::vector<TensorStep> tensor_steps(const Op& op, const Numbers& numbers) {
  std::vector<TensorStep> steps;
  for (const TensorSpec& spec : op.tensors) {
    if (spec.strided) add_layouts(steps, op, spec, numbers);
    if (spec.role == Role::in && spec.recipe_settable) add_values(steps, op, spec, numbers);
  }
  return steps;
}

}  // namespace dcpcheck
