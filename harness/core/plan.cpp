#include "harness/core/plan.hpp"

#include <algorithm>
#include <set>

#include "harness/core/error.hpp"
#include "harness/core/inputs.hpp"

namespace dcpcheck {
namespace {

// Sizes are checked as they are formed: a case may name any.
std::int64_t product(std::int64_t a, std::int64_t b, const std::string& source) {
  std::int64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) throw InputError(source + ": a tensor would have more than 2^63 elements");
  return out;
}

CachePlan plan_cache(const TensorSpec& spec, const CacheGroup& group, const Environment& environment,
                     const std::string& source) {
  const auto record = std::find_if(spec.records.begin(), spec.records.end(),
                                   [&](const Record& r) { return r.when.empty() || r.when.truth(environment); });
  if (record == spec.records.end()) throw InputError(source + ": no record layout of " + spec.name + " holds for these params");
  CachePlan cache;
  cache.group = spec.cache;
  cache.planar = record->planar;
  cache.kernel_block_size = group.kernel_block_size;
  cache.blocks = std::get<std::int64_t>(environment.at(spec.cache + ".blocks"));
  for (const Field& field : record->fields) {
    FieldPlan plan;
    plan.name = field.name;
    plan.dtype = field.dtype;
    plan.count = field.count.integer(environment);
    if (plan.count < 0) throw InputError(source + ": " + spec.name + "." + field.name + " would have a negative count");
    plan.offset = cache.planar ? product(cache.record_bytes, cache.kernel_block_size, source) : cache.record_bytes;
    plan.scaled_by = field.scaled_by;
    plan.told = field.told;
    if (!field.tile.empty()) plan.tile = std::max<std::int64_t>(field.tile.integer(environment), 1);
    cache.record_bytes += product(plan.count, size_of(plan.dtype), source);
    cache.fields.push_back(std::move(plan));
  }
  cache.block_stride = product(cache.record_bytes, cache.kernel_block_size, source) + group.block_stride_padding;
  return cache;
}

// The most bytes that the windows of a sparse cache come to, on all ranks together: a window takes its field and a page on
// either side, and around a field there is one for each place that its address may be taken for.
std::int64_t most_resident(const CachePlan& cache, const Geometry& geometry, const std::string& source) {
  constexpr std::int64_t kPages = 2 * 4096;
  constexpr std::int64_t kPlaces = 6;
  std::int64_t records = 0;
  for (const Request& request : geometry.batch) records += request.cached + request.uncached;
  const auto fields = static_cast<std::int64_t>(cache.fields.size());
  const std::int64_t window = cache.record_bytes + fields * kPages;
  const std::int64_t ends = 4 * (cache.block_stride + kPages);  // the first block, the last one, and the guards
  return product(product(records, geometry.tp * kPlaces, source), window, source) + ends;
}

void lay_out(TensorPlan& tensor, const RowLayout& rows, const std::string& source) {
  const std::int64_t columns = tensor.columns();
  const std::int64_t stride = rows.stride == 0 ? columns : rows.stride;
  if (stride < columns) {
    throw InputError(source + ": /layout/" + tensor.name + "/stride is " + std::to_string(stride) + ", less than a row's " +
                     std::to_string(columns) + " elements");
  }
  // Row-strided: axis 0 has the given stride, the others are dense.
  tensor.strides.assign(tensor.shape.size(), 1);
  for (std::size_t axis = tensor.shape.size(); axis-- > 1;) {
    tensor.strides[axis - 1] = axis == 1 ? stride : product(tensor.strides[axis], tensor.shape[axis], source);
  }
  tensor.offset = rows.offset;
  // The last row is as wide as the others: the tensor is a slice of a wider one, offset columns in.
  tensor.storage_elements =
      tensor.shape.size() == 1 ? rows.offset + tensor.shape[0] : product(tensor.shape[0], stride, source) + rows.offset;
}

}  // namespace

std::int64_t CachePlan::address(std::int64_t slot, const FieldPlan& field) const {
  const std::int64_t block = slot / kernel_block_size;
  const std::int64_t row = slot % kernel_block_size;
  return block * block_stride + field.offset + row * (planar ? field.bytes() : record_bytes);
}

std::int64_t TensorPlan::columns() const {
  std::int64_t columns = 1;
  for (std::size_t axis = 1; axis < shape.size(); ++axis) columns *= shape[axis];
  return columns;
}

const TensorPlan* Plan::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const TensorPlan& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

const TensorPlan& Plan::tensor(std::string_view name) const {
  if (const TensorPlan* found = find(name)) return *found;
  throw HarnessError("the plan of " + op->name + " has no tensor " + std::string(name));
}

Plan make_plan(const Op& op, const Case& value, std::int64_t budget, const std::string& source) {
  validate(op, value, source);
  Plan plan;
  plan.op = &op;
  plan.value = value;
  plan.environment = environment_of(op, value);
  plan.live = value.geometry.live_tokens();
  plan.tokens = value.geometry.tokens();
  plan.capacity = std::get<std::int64_t>(plan.environment.at("capacity"));

  std::set<std::string> placed;  // layouts that named a tensor that is there
  const auto add = [&](const TensorSpec& spec, const std::string& name, const Environment& environment) {
    TensorPlan tensor;
    tensor.spec = &spec;
    tensor.name = name;
    tensor.role = spec.role;
    if (!spec.cache.empty()) {
      tensor.cache = plan_cache(spec, value.geometry.caches.at(spec.cache), environment, source);
      tensor.shape = {tensor.cache.blocks, tensor.cache.kernel_block_size, tensor.cache.record_bytes};
      tensor.strides = {tensor.cache.block_stride, tensor.cache.record_bytes, 1};
      tensor.storage_elements = product(tensor.cache.blocks, tensor.cache.block_stride, source);
      tensor.cache.sparse = value.geometry.caches.at(spec.cache).sparse;
      if (tensor.cache.sparse) {
        constexpr std::int64_t most = std::int64_t{1} << 42;  // also under sanitizers, which leave a program few addresses
        if (tensor.storage_elements > most) {
          throw InputError(source + ": " + name + " spans " + std::to_string(tensor.storage_elements) +
                           " bytes, but a sparse cache spans at most 2^42");
        }
        tensor.cache.resident = most_resident(tensor.cache, value.geometry, source);
      }
      if (spec.role == Role::cache && plan.find(spec.slot_mapping)) tensor.slot_mapping = spec.slot_mapping;
      plan.tensors.push_back(std::move(tensor));
      return;
    }
    const Term dtype = spec.dtype.evaluate(environment);
    if (!std::holds_alternative<std::string>(dtype)) throw InputError(source + ": the dtype of " + name + " is no name");
    tensor.dtype = dtype_named(std::get<std::string>(dtype));
    std::int64_t elements = 1;
    for (const Expression& axis : spec.shape) {
      tensor.shape.push_back(axis.integer(environment));
      if (tensor.shape.back() < 0) throw InputError(source + ": an axis of " + name + " would be negative");
      elements = product(elements, std::max<std::int64_t>(tensor.shape.back(), 1), source);
    }
    const auto given = value.values.find(spec.name);
    tensor.recipe = given == value.values.end() ? spec.values : given->second;
    tensor.unjudged = !spec.unjudged.empty() && spec.unjudged.truth(environment);
    const auto layout = value.layout.find(name);
    if (layout != value.layout.end()) placed.insert(name);
    lay_out(tensor, layout == value.layout.end() ? RowLayout{} : layout->second, source);
    if (!spec.in_place_of.empty() && spec.in_place_when.truth(environment)) {
      if (layout != value.layout.end())
        throw InputError(source + ": /layout/" + name + " lies on " + spec.in_place_of + ": lay that out");
      const TensorPlan& under = plan.tensor(spec.in_place_of);
      if (under.shape != tensor.shape || under.dtype != tensor.dtype) {
        throw InputError(source + ": " + name + " lies on " + spec.in_place_of + ", which has another shape or dtype");
      }
      tensor.strides = under.strides;
      tensor.offset = under.offset;
      tensor.storage_elements = under.storage_elements;
      tensor.in_place_of = spec.in_place_of;
    }
    plan.tensors.push_back(std::move(tensor));
  };

  for (const TensorSpec& spec : op.tensors) {
    if (!spec.when.empty() && !spec.when.truth(plan.environment)) continue;
    if (!spec.per_group) {
      add(spec, spec.name, plan.environment);
      continue;
    }
    for (const auto& [group, unused] : value.geometry.caches) {
      Environment environment = plan.environment;
      for (const char* term : {"block_size", "kernel_block_size", "table_columns"}) {
        environment["group." + std::string(term)] = plan.environment.at(group + "." + term);
      }
      add(spec, spec.name + "." + group, environment);
    }
  }
  for (const TensorPlan& tensor : plan.tensors) {
    if (tensor.role != Role::in || !tensor.spec->cache.empty()) continue;
    if (const std::string_view slots = "slots:"; tensor.recipe.starts_with(slots)) {
      const std::string group = tensor.recipe.substr(slots.size());
      const auto found = value.geometry.caches.find(group);
      if (found == value.geometry.caches.end() || found->second.slot_mapping == "none")
        throw InputError(source + ": " + tensor.name + " is of the slots of cache group " + group + ", which has none here");
    }
    try {
      check_recipe_fits(value, tensor);
    } catch (const InputError& error) {
      throw InputError(source + ": /values/" + tensor.spec->name + ": " + error.what());
    }
  }
  for (const auto& [name, rows] : value.layout) {
    if (!placed.contains(name))
      throw InputError(source + ": /layout/" + name + " lays out a tensor that this case does not have");
  }

  // What a run takes on the host at the most: inputs twice (made, placed), per-rank ones for each rank; outputs and the
  // guards around them four times (both poisons, before and after); 16 bytes of value and bound for each judged element.
  const auto count = [&](std::int64_t bytes, std::int64_t times) {
    if (__builtin_add_overflow(plan.memory, product(bytes, times, source), &plan.memory)) {
      throw InputError(source + ": needs more than 2^63 bytes");
    }
  };
  std::int64_t guards = 0;
  std::int64_t widest_block = 4096;
  for (const TensorPlan& tensor : plan.tensors) {
    if (tensor.role == Role::in) {
      // Of a cache there are the records, too, from which each rank's is made.
      const std::int64_t made = tensor.spec->cache.empty() ? 1 : 2;
      count(tensor.bytes(), tensor.spec->per_rank ? 1 + made * value.geometry.tp : 2);
      continue;
    }
    // A sparse cache's windows lie in the images, and once more where the kernel runs.
    count(tensor.cache.sparse ? tensor.cache.resident : tensor.bytes(), tensor.cache.sparse ? 5 : 4);
    guards += 2;
    if (tensor.role == Role::out) count(product(tensor.rows(), tensor.columns(), source), 16);
    if (tensor.role == Role::cache) {
      widest_block = std::max(widest_block, tensor.cache.block_stride);
      count(product(plan.tokens, tensor.cache.record_bytes, source), 16);
    }
  }
  count(product(widest_block, guards, source), 4);
  // References deal positions out one by one; records of the cached tokens are kept for each rank that holds them.
  std::int64_t longest = 0, cached = 0;
  for (const Request& request : value.geometry.batch) {
    longest = std::max(longest, request.cached + request.uncached);
    cached += request.cached;
  }
  if (op.rank_reference) count(longest, 16);
  for (const TensorPlan& tensor : plan.tensors) {
    if (tensor.spec->cache.empty()) continue;
    const bool sharded = value.geometry.caches.at(tensor.spec->cache).slot_mapping == "dcp";
    const std::int64_t copies = value.geometry.tp / (sharded ? value.geometry.world_size : 1);
    count(product(cached, tensor.cache.record_bytes + 96, source), copies + 1);
  }
  if (plan.memory > budget) {
    throw InputError(source + ": needs " + std::to_string((plan.memory >> 20) + 1) + " MiB, more than the memory budget of " +
                     (budget < (1 << 20) ? std::to_string(budget) + " bytes" : std::to_string(budget >> 20) + " MiB") +
                     " (raise it with --memory)");
  }
  return plan;
}

}  // namespace dcpcheck
