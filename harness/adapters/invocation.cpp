#include "harness/adapters/invocation.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

using Kind = Binding::Kind;

// Why a variant is not for the case.
struct NotFor {
  std::string why;
  bool by_case = false;  // by its `when`; else the case is one of its, but not the launch
};

template <class T>
void append(std::vector<std::byte>& to, T value) {
  const std::size_t at = to.size();
  to.resize(at + sizeof value);
  std::memcpy(to.data() + at, &value, sizeof value);
}

template <class T>
void append_narrowed(std::vector<std::byte>& to, std::int64_t value, const std::string& place, const char* type) {
  if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max())
    throw NotFor{place + " is " + std::to_string(value) + ", which no " + type + " holds"};
  append(to, static_cast<T>(value));
}

void append_integer(std::vector<std::byte>& to, std::int64_t value, const Binding& binding) {
  switch (binding.type) {
    case ScalarType::i8: return append_narrowed<std::int8_t>(to, value, binding.place, "i8");
    case ScalarType::i16: return append_narrowed<std::int16_t>(to, value, binding.place, "i16");
    case ScalarType::i32: return append_narrowed<std::int32_t>(to, value, binding.place, "i32");
    case ScalarType::i64: return append(to, value);
    case ScalarType::f32: return append(to, static_cast<float>(value));
    case ScalarType::f64: return append(to, static_cast<double>(value));
  }
}

void append_real(std::vector<std::byte>& to, double value, ScalarType type) {
  if (type == ScalarType::f32) append(to, static_cast<float>(value));
  if (type == ScalarType::f64) append(to, value);
}

void add_facts(Environment& environment, const std::string& name, const View& view) {
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis) {
    environment.emplace(name + ".shape" + std::to_string(axis), view.shape[axis]);
    environment.emplace(name + ".stride" + std::to_string(axis), view.strides[axis]);
  }
}

class Arguments {
 public:
  Arguments(const Launch& launch, const Environment& environment) : launch_(launch), environment_(environment) {}

  void add(const Binding& binding, Invocation& to) const {
    std::vector<std::byte> bytes;
    if (binding.kind == Kind::structure) {
      for (const Binding& field : binding.parts) {
        pad(bytes, field.aligned());
        add_to(bytes, field, to);
      }
      pad(bytes, binding.aligned());
    } else {
      add_to(bytes, binding, to);
    }
    to.parameters.push_back(std::move(bytes));
  }

  // The tensor as the launch has it; nullptr where the case is without. `group`: the one whose turn it is in an array.
  const View* view(const std::string& name, const std::string& group) const {
    const TensorSpec* const spec = launch_.plan.op->tensor(name);
    const auto found = launch_.tensors.find(spec != nullptr && spec->per_group ? name + "." + group : name);
    return found == launch_.tensors.end() ? nullptr : &found->second;
  }

 private:
  static void pad(std::vector<std::byte>& bytes, std::int64_t alignment) {
    while (bytes.size() % static_cast<std::size_t>(alignment) != 0) bytes.push_back(std::byte{0});
  }

  // A parameter, or a field of one; memory that it asks for is the invocation's.
  void add_to(std::vector<std::byte>& bytes, const Binding& binding, Invocation& invocation) const {
    if (binding.kind != Kind::scratch && binding.kind != Kind::array) return append_to(bytes, binding, environment_, "");
    Scratch scratch{invocation.parameters.size(), bytes.size(), 0, binding.zeroed, {}};
    if (binding.kind == Kind::scratch) {
      scratch.bytes = binding.value.integer(environment_);
      if (scratch.bytes < 0) throw InputError(binding.place + " would be of " + std::to_string(scratch.bytes) + " bytes");
    } else {
      for (const auto& [group, unused] : launch_.plan.value.geometry.caches)
        append_to(scratch.contents, binding.parts.front(), within(group), group);
      scratch.bytes = static_cast<std::int64_t>(scratch.contents.size());
    }
    invocation.scratch.push_back(std::move(scratch));
    append(bytes, std::uint64_t{0});
  }

  // What expressions see for one group of an array.
  Environment within(const std::string& group) const {
    Environment environment = environment_;
    const std::string prefix = group + ".";
    for (const auto& [name, term] : environment_)
      if (name.starts_with(prefix)) environment["group." + name.substr(prefix.size())] = term;
    for (const TensorPlan& tensor : launch_.plan.tensors) {
      const auto found = launch_.tensors.find(tensor.name);
      if (tensor.spec->per_group && tensor.name == tensor.spec->name + "." + group && found != launch_.tensors.end())
        add_facts(environment, tensor.spec->name, found->second);
    }
    return environment;
  }

  void append_to(std::vector<std::byte>& to, const Binding& binding, const Environment& environment,
                 const std::string& group) const {
    switch (binding.kind) {
      case Kind::address: {
        const View* const at = view(binding.tensor, group);
        if (at == nullptr && !binding.optional) throw absent(binding);
        const std::int64_t offset = binding.offset.empty() || at == nullptr ? 0 : binding.offset.integer(environment);
        const std::uint64_t address =
            at == nullptr ? 0 : reinterpret_cast<std::uintptr_t>(at->data) + static_cast<std::uint64_t>(offset);
        if (address % static_cast<std::uint64_t>(binding.alignment) != 0)
          throw NotFor{binding.place + " is an address in " + binding.tensor + " that " + std::to_string(binding.alignment) +
                       " does not divide"};
        return append(to, address);
      }
      case Kind::stride:
      case Kind::shape: {
        const View* const at = view(binding.tensor, group);
        if (at == nullptr && !binding.optional) throw absent(binding);
        if (at == nullptr) return append_integer(to, 0, binding);
        const auto axis = static_cast<std::size_t>(binding.axis);
        return append_integer(to, binding.kind == Kind::stride ? at->strides.at(axis) : at->shape.at(axis), binding);
      }
      case Kind::value: return append_integer(to, binding.value.integer(environment), binding);
      case Kind::number: return append_real(to, static_cast<double>(launch_.plan.value.number(binding.param)), binding.type);
      case Kind::constant:
        if (binding.type == ScalarType::f32 || binding.type == ScalarType::f64)
          return append_real(to, binding.real, binding.type);
        return append_integer(to, binding.integer, binding);
      case Kind::null: return append(to, std::uint64_t{0});
      case Kind::scratch:
      case Kind::array:
      case Kind::structure: break;
    }
    throw HarnessError(binding.place + " was read where it cannot stand");
  }

  static NotFor absent(const Binding& binding) {
    return {binding.place + " is of " + binding.tensor + ", which the case does not have"};
  }

  const Launch& launch_;
  const Environment& environment_;
};

// What expressions see: the case, and the launch's tensors. A name that the case itself has goes before a tensor's.
Environment environment_for(const Manifest& manifest, const Launch& launch) {
  Environment environment = launch.plan.environment;
  environment.emplace("rank", launch.rank);
  for (const TensorSpec& spec : manifest.op->tensors) {
    const bool present = std::any_of(launch.plan.tensors.begin(), launch.plan.tensors.end(),
                                     [&](const TensorPlan& tensor) { return tensor.spec->name == spec.name; });
    environment.emplace(spec.name + ".present", std::int64_t{present});
  }
  for (const auto& [name, view] : launch.tensors) add_facts(environment, name, view);
  for (const auto& [name, value] : manifest.values) {
    // One that cannot be worked out for the case is missed where it is asked for: not every variant does.
    try {
      environment.emplace(name, value.evaluate(environment));
    } catch (const InputError&) {
      continue;
    }
  }
  return environment;
}

void check_assumption(const Assumption& assumption, const Arguments& arguments, const Environment& environment) {
  const auto divides = [&](std::uint64_t value) {
    return assumption.divisible_by == 0 || value % static_cast<std::uint64_t>(assumption.divisible_by) == 0;
  };
  const std::string divisor = std::to_string(assumption.divisible_by);
  if (!assumption.tensor.empty()) {
    const View* const view = arguments.view(assumption.tensor, "");
    if (view == nullptr) return;  // a null pointer is aligned
    const std::int64_t offset = assumption.offset.empty() ? 0 : assumption.offset.integer(environment);
    if (divides(reinterpret_cast<std::uintptr_t>(view->data) + static_cast<std::uint64_t>(offset))) return;
    throw NotFor{assumption.tensor + (offset == 0 ? "" : " + " + std::to_string(offset)) + " lies at an address that " +
                 divisor + " does not divide"};
  }
  const std::int64_t value = assumption.value.integer(environment);
  const std::string found = assumption.value.text() + " is " + std::to_string(value);
  if (assumption.divisible_by != 0 && value % assumption.divisible_by != 0)
    throw NotFor{found + ", which " + divisor + " does not divide"};
  if (assumption.divisible_by == 0 && value != assumption.equal_to)
    throw NotFor{found + ", not " + std::to_string(assumption.equal_to)};
}

void check_fits(const Variant& variant, const Arguments& arguments, const Environment& environment) {
  try {
    if (!variant.when.empty() && !variant.when.truth(environment)) throw NotFor{"not " + variant.when.text(), true};
    for (const Assumption& assumption : variant.assumptions) check_assumption(assumption, arguments, environment);
  } catch (const InputError& error) {
    throw NotFor{error.what()};
  }
}

std::array<std::int64_t, 3> worked_out(const std::array<Expression, 3>& extents, const Environment& environment) {
  std::array<std::int64_t, 3> out{1, 1, 1};
  for (std::size_t i = 0; i < 3; ++i)
    if (!extents[i].empty()) out[i] = extents[i].integer(environment);
  return out;
}

Invocation invocation_of(const Variant& variant, const Arguments& arguments, const Environment& environment) {
  check_fits(variant, arguments, environment);
  Invocation invocation;
  invocation.variant = &variant;
  invocation.grid = worked_out(variant.grid, environment);
  invocation.block = worked_out(variant.block, environment);
  invocation.cluster = worked_out(variant.cluster, environment);
  invocation.clustered = !variant.cluster[0].empty();
  if (!variant.shared_bytes.empty()) invocation.shared_bytes = variant.shared_bytes.integer(environment);
  for (const Binding& binding : variant.parameters) arguments.add(binding, invocation);
  return invocation;
}

std::string refusal_of(const Invocation& invocation) {
  constexpr std::int64_t most_shared = 1 << 20;  // more than any GPU has: the driver knows the true figure
  if (invocation.shared_bytes < 0 || invocation.shared_bytes > most_shared)
    return "dynamic shared memory would be of " + std::to_string(invocation.shared_bytes) + " bytes";
  return refusal_of_extents(invocation.grid, invocation.block, invocation.cluster);
}

}  // namespace

std::size_t axes_of(const TensorSpec& tensor) { return tensor.cache.empty() ? tensor.shape.size() : 3; }

std::string refusal_of_extents(const std::array<std::int64_t, 3>& grid, const std::array<std::int64_t, 3>& block,
                               const std::array<std::int64_t, 3>& cluster) {
  constexpr std::array<std::int64_t, 3> most_blocks{2147483647, 65535, 65535};
  constexpr std::array<std::int64_t, 3> most_threads{1024, 1024, 64};
  constexpr std::int64_t most_in_cluster = 16;
  std::int64_t threads = 1;
  std::int64_t clustered = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string axis(1, "xyz"[i]);
    if (grid[i] < 0 || grid[i] > most_blocks[i])
      return "the grid would be " + std::to_string(grid[i]) + " in " + axis + ", where CUDA has 0 to " +
             std::to_string(most_blocks[i]);
    if (block[i] < 1 || block[i] > most_threads[i])
      return "a block would be " + std::to_string(block[i]) + " in " + axis + ", where CUDA has 1 to " +
             std::to_string(most_threads[i]);
    if (cluster[i] < 1 || cluster[i] > most_in_cluster)
      return "a cluster would be " + std::to_string(cluster[i]) + " in " + axis + ", where CUDA has 1 to 16";
    if (grid[i] % cluster[i] != 0)
      return "the grid is " + std::to_string(grid[i]) + " in " + axis + ", which clusters of " + std::to_string(cluster[i]) +
             " do not fill";
    threads *= block[i];
    clustered *= cluster[i];
  }
  if (threads > 1024) return "a block would have " + std::to_string(threads) + " threads, where CUDA has at most 1024";
  if (clustered > most_in_cluster)
    return "a cluster would have " + std::to_string(clustered) + " blocks, where CUDA has at most 16";
  return "";
}

std::string parameters_mismatch(const Variant& variant, const std::vector<std::int64_t>& entry_takes) {
  const std::size_t both = std::min(variant.parameters.size(), entry_takes.size());
  for (std::size_t i = 0; i < both; ++i) {
    const Binding& binding = variant.parameters[i];
    if (binding.bytes() != entry_takes[i])
      return binding.place + " is " + std::to_string(binding.bytes()) + " bytes, but " + variant.entry + " takes " +
             std::to_string(entry_takes[i]) + " there";
  }
  if (variant.parameters.size() == entry_takes.size()) return "";
  return variant.place + " has " + std::to_string(variant.parameters.size()) + " parameters, but " + variant.entry + " takes " +
         std::to_string(entry_takes.size());
}

std::variant<Invocation, LaunchError> work_out(const Manifest& manifest, const Launch& launch) {
  const Environment environment = environment_for(manifest, launch);
  const Arguments arguments(launch, environment);
  std::vector<std::string> by_case, by_launch;
  for (const Variant& variant : manifest.variants) {
    try {
      Invocation invocation = invocation_of(variant, arguments, environment);
      const std::string why = refusal_of(invocation);
      if (!why.empty()) return LaunchError(variant.place + " (" + variant.name + "): " + why);
      return invocation;
    } catch (const NotFor& reason) {
      (reason.by_case ? by_case : by_launch).push_back(variant.name + ": " + reason.why);
    } catch (const InputError& error) {
      return LaunchError(variant.place + " (" + variant.name + ") cannot be worked out for the case: " + error.what());
    }
  }
  // Of variants that are for such cases, if there are any, as the others say nothing new.
  const std::vector<std::string>& reasons = by_launch.empty() ? by_case : by_launch;
  constexpr std::size_t most_reasons = 4;
  std::string list;
  for (std::size_t i = 0; i < std::min(reasons.size(), most_reasons); ++i) list += (i == 0 ? "" : "; ") + reasons[i];
  if (reasons.size() > most_reasons) list += "; and so on, " + std::to_string(reasons.size()) + " variants";
  return LaunchError(LaunchError::Kind::skipped, "no variant of the manifest fits: " + list);
}

}  // namespace dcpcheck
