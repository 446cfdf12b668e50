#include "properties/buckets.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "properties/facts.hpp"
#include "properties/ranges.hpp"

namespace dcpcheck {
namespace {

using Dimensions = std::vector<Dimension>;

void add_param(Dimensions& out, const Param& param) {
  const auto buckets = buckets_of(param);
  std::vector<std::string> names;
  names.reserve(buckets.size());
  for (const ValueBucket& bucket : buckets) names.push_back(bucket.name);
  out.push_back({"param." + param.name, names,
                 [&param, buckets](const Plan& plan) { return bucket_of(param, buckets, plan.value.params.at(param.name)); }});
  // The rope tables' last row: the param that positions are held against (see the recipe positions).
  if (param.name == "max_position" && param.kind == Param::Kind::integer) {
    out.push_back({"last_position", {"inside", "last row"}, [](const Plan& plan) {
                     const std::int64_t last = std::get<std::int64_t>(plan.environment.at("last_position"));
                     return last < 0 ? -1 : last + 1 == plan.value.integer("max_position") ? 1 : 0;
                   }});
  }
}

void add_layout(Dimensions& out, const Op& op, const TensorSpec& spec) {
  std::vector<std::string> names = {spec.name};
  if (spec.per_group) {
    names.clear();
    for (const std::string& group : groups_of(op)) names.push_back(spec.name + "." + group);
  }
  for (const std::string& name : names) {
    out.push_back({"layout." + name, {"dense", "stride", "offset", "stride and offset"}, [name](const Plan& plan) {
                     const TensorPlan* const tensor = plan.find(name);
                     if (tensor == nullptr || !tensor->in_place_of.empty()) return -1;
                     const auto rows = plan.value.layout.find(name);
                     if (rows == plan.value.layout.end()) return 0;
                     return (rows->second.stride != 0 ? 1 : 0) + (rows->second.offset != 0 ? 2 : 0);
                   }});
  }
}

void add_values(Dimensions& out, const Op& op, const TensorSpec& spec) {
  const auto families = recipe_families(op, spec);
  std::vector<std::string> names;
  names.reserve(families.size());
  for (const RecipeFamily& family : families) names.push_back(family.name);
  out.push_back({"values." + spec.name, names, [&spec, families](const Plan& plan) {
                   return plan.find(spec.name) == nullptr ? -1 : family_of(families, recipe_of(plan.value, spec));
                 }});
}

}  // namespace

std::vector<Dimension> dimensions_of(const Op& op) {
  Dimensions out;
  for (const GeometryDimension& dimension : geometry_dimensions(op)) {
    out.push_back({dimension.name, dimension.buckets,
                   [bucket_of = dimension.bucket_of](const Plan& plan) { return bucket_of(plan.value.geometry); }});
  }
  for (const Option& option : op.contract) {
    out.push_back({"contract." + option.name, option.values, [&option](const Plan& plan) {
                     const auto found = std::find(option.values.begin(), option.values.end(), plan.value.option(option.name));
                     return static_cast<int>(found - option.values.begin());
                   }});
  }
  for (const Param& param : op.params) add_param(out, param);
  for (const TensorSpec& spec : op.tensors) {
    if (spec.strided) add_layout(out, op, spec);
  }
  for (const TensorSpec& spec : op.tensors) {
    if (spec.role == Role::in && spec.recipe_settable) add_values(out, op, spec);
  }
  out.push_back({"graph", {"off", "on"}, [](const Plan& plan) { return plan.value.graph ? 1 : 0; }});
  // A place for sparse caches: once a case can say them, a dimension a group ("committed", "sparse") and a share of the
  // indices beside the large launches (generators.cpp).
  out.erase(std::remove_if(out.begin(), out.end(), [](const Dimension& dimension) { return dimension.buckets.size() < 2; }),
            out.end());
  return out;
}

std::vector<int> sizes_of(const std::vector<Dimension>& dimensions) {
  std::vector<int> sizes;
  sizes.reserve(dimensions.size());
  for (const Dimension& dimension : dimensions) sizes.push_back(static_cast<int>(dimension.buckets.size()));
  return sizes;
}

Buckets buckets_of(const std::vector<Dimension>& dimensions, const Plan& plan) {
  Buckets out;
  out.reserve(dimensions.size());
  for (const Dimension& dimension : dimensions) out.push_back(dimension.bucket_of(plan));
  return out;
}

Coverage::Coverage(const std::vector<Dimension>& dimensions, PairSet feasible)
    : dimensions_(dimensions), feasible_(std::move(feasible)), met_(sizes_of(dimensions)) {
  for (const Dimension& dimension : dimensions) counts_.emplace_back(dimension.buckets.size());
}

void Coverage::add(const Plan& plan) {
  const Buckets buckets = buckets_of(dimensions_, plan);
  met_.add(buckets);
  for (std::size_t d = 0; d < buckets.size(); ++d) {
    if (buckets[d] >= 0) ++counts_[d][static_cast<std::size_t>(buckets[d])];
  }
  ++cases_;
}

std::int64_t Coverage::met() const {
  std::int64_t count = 0;
  feasible_.every([&](int a, int i, int b, int j) {
    if (feasible_.contains(a, i, b, j) && met_.contains(a, i, b, j)) ++count;
  });
  return count;
}

std::int64_t Coverage::unforeseen() const { return met_.size() - met(); }

std::int64_t Coverage::in_bucket(const std::string& dimension, const std::string& bucket) const {
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    if (dimensions_[d].name != dimension) continue;
    for (std::size_t b = 0; b < dimensions_[d].buckets.size(); ++b) {
      if (dimensions_[d].buckets[b] == bucket) return counts_[d][b];
    }
  }
  return 0;
}

std::vector<std::string> Coverage::missing() const {
  std::vector<std::string> out;
  const auto name = [&](int dimension, int bucket) {
    const Dimension& of = dimensions_[static_cast<std::size_t>(dimension)];
    return of.name + " " + of.buckets[static_cast<std::size_t>(bucket)];
  };
  feasible_.every([&](int a, int i, int b, int j) {
    if (feasible_.contains(a, i, b, j) && !met_.contains(a, i, b, j)) out.push_back(name(a, i) + " with " + name(b, j));
  });
  return out;
}

json::Value Coverage::to_json() const {
  json::Object buckets;
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    json::Object counts;
    for (std::size_t b = 0; b < dimensions_[d].buckets.size(); ++b) {
      counts.emplace_back(dimensions_[d].buckets[b], counts_[d][b]);
    }
    buckets.emplace_back(dimensions_[d].name, std::move(counts));
  }
  return json::Object{
      {"cases", cases_}, {"pairs", json::Object{{"met", met()}, {"feasible", feasible()}}}, {"buckets", std::move(buckets)}};
}

}  // namespace dcpcheck
