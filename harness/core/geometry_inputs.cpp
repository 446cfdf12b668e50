#include "harness/core/geometry_inputs.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "harness/core/chunk.hpp"
#include "harness/core/error.hpp"
#include "harness/core/inputs.hpp"
#include "harness/core/philox.hpp"
#include "harness/core/recipe.hpp"

namespace dcpcheck {
namespace {

std::int64_t size_named(const Plan& plan, const std::string& name) {
  const auto found = plan.environment.find(name);
  const auto* value = found == plan.environment.end() ? nullptr : std::get_if<std::int64_t>(&found->second);
  if (value == nullptr) throw HarnessError("the plan has no size " + name);
  return *value;
}

const CacheGroup& group_named(const Plan& plan, const std::string& name) {
  const auto found = plan.value.geometry.caches.find(name);
  if (found == plan.value.geometry.caches.end()) throw HarnessError("the case has no cache group " + name);
  return found->second;
}

// The group that `name`'s table and mapping are those of.
std::string mapped_as(const Plan& plan, const std::string& name) {
  return group_named(plan, name).slot_mapping == "same" ? "mla" : name;
}

std::int64_t padding_slot(const Padding& padding, std::int64_t kernel_block_size) {
  if (padding.slots == "-block") return -kernel_block_size;
  if (padding.slots == "int32_min") return std::numeric_limits<std::int32_t>::min();
  if (padding.slots == "int64_min") return std::numeric_limits<std::int64_t>::min();
  return -1;
}

std::vector<std::int64_t> positions(const Plan& plan) {
  const Geometry& geometry = plan.value.geometry;
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(plan.tokens));
  std::int64_t last = 0;
  for (const Request& request : geometry.batch) {
    for (std::int64_t token = 0; token < request.uncached; ++token) {
      out.push_back(request.cached + token);
      last = std::max(last, out.back());
    }
  }
  const Stream stream(plan.value.seed, "positions");
  // Past the rope tables, where the op has some; else past every position of the launch. The first padding token has
  // the first row that is not there.
  const auto rows = plan.environment.find("max_position");
  const std::int64_t past = rows == plan.environment.end() ? last + 1 : std::max(last + 1, size_named(plan, "max_position"));
  for (std::int64_t token = 0; token < geometry.padding.tokens; ++token) {
    if (geometry.padding.positions == "zero") {
      out.push_back(0);
    } else if (geometry.padding.positions == "stale") {
      out.push_back(past + token % 8);
    } else {
      const auto word = stream.word(static_cast<std::uint64_t>(token));
      out.push_back(static_cast<std::int64_t>(word % static_cast<std::uint64_t>(last + 1)));
    }
  }
  return out;
}

// The table row of each request.
std::vector<std::int64_t> idx_mapping(const Plan& plan) {
  const auto requests = static_cast<std::int64_t>(plan.value.geometry.batch.size());
  const Stream stream(plan.value.seed, "idx_mapping");
  Draw draw(requests);
  std::vector<std::int64_t> out;
  for (std::int64_t request = 0; request < requests; ++request)
    out.push_back(draw.next(stream.word(static_cast<std::uint64_t>(request))));
  return out;
}

// The table as the tensor has it: by idx_mapping where the op has one, else by request.
std::vector<std::int64_t> table_rows(const Plan& plan, const std::string& group) {
  const std::vector<std::vector<std::int32_t>> table = block_table(plan, group);
  std::vector<std::int64_t> rows(table.size());
  std::iota(rows.begin(), rows.end(), 0);
  if (std::any_of(plan.tensors.begin(), plan.tensors.end(), [](const TensorPlan& t) { return t.recipe == "idx_mapping"; })) {
    rows = idx_mapping(plan);
  }
  const std::size_t columns = table.empty() ? 0 : table.front().size();
  std::vector<std::int64_t> out(table.size() * columns);
  for (std::size_t request = 0; request < table.size(); ++request) {
    const auto start = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rows[request]) * columns);
    std::copy(table[request].begin(), table[request].end(), out.begin() + start);
  }
  return out;
}

// The cache group that a tensor's table is of: in its name where there is one tensor a group, else the only one.
std::string group_of(const Plan& plan, const TensorPlan& tensor) {
  if (tensor.spec != nullptr && tensor.spec->per_group) return tensor.name.substr(tensor.spec->name.size() + 1);
  if (plan.value.geometry.caches.size() == 1) return plan.value.geometry.caches.begin()->first;
  throw InputError(tensor.name + ": block_table needs a tensor for each cache group (per_group), or a case with one group");
}

std::vector<std::int64_t> group_field(const Plan& plan, const std::string& field) {
  std::vector<std::int64_t> out;
  for (const auto& [name, group] : plan.value.geometry.caches) {
    if (field == "enabled") {
      out.push_back(group.enabled ? 1 : 0);
    } else if (field == "sharded") {
      out.push_back(group_named(plan, mapped_as(plan, name)).slot_mapping == "dcp" ? 1 : 0);
    } else {
      out.push_back(size_named(plan, name + "." + field));
    }
  }
  return out;
}

std::vector<std::int64_t> chunk_field(const Plan& plan, const TensorPlan& tensor, const std::string& field) {
  if (plan.value.geometry.caches.size() != 1) throw InputError(tensor.name + ": a chunk needs a case with one cache group");
  const ChunkPlan chunk = plan_chunk(plan.value.geometry, plan.value.geometry.caches.begin()->second);
  std::vector<std::int64_t> out;
  if (field != "local_starts") out.push_back(0);
  for (const ChunkRequest& request : chunk.requests) {
    if (field == "local_starts") out.push_back(request.local_start);
    if (field == "local_offsets") out.push_back(out.back() + request.padded);
    if (field == "context_offsets") out.push_back(out.back() + request.tokens);
  }
  return out;
}

}  // namespace

GroupMap::GroupMap(const Plan& plan, const std::string& group)
    : plan_(&plan),
      group_(mapped_as(plan, group)),
      config_(&group_named(plan, group_)),
      sharded_(config_->slot_mapping == "dcp"),
      sharding_{size_named(plan, group_ + ".block_size"), sharded_ ? plan.value.geometry.world_size : 1,
                sharded_ ? plan.value.geometry.interleave : 1},
      kernel_block_size_(size_named(plan, group_ + ".kernel_block_size")),
      blocks_(size_named(plan, group_ + ".blocks")),
      columns_(size_named(plan, group_ + ".table_columns")) {
  // Block 0 is no one's: ids start at 1. The spare ones are drawn first, so they lie anywhere between the others.
  const Stream stream(plan.value.seed, "block_table." + group_);
  Draw draw(blocks_ - 1);
  std::uint64_t drawn = 0;
  const auto next = [&] {
    if (draw.left() <= 0) throw HarnessError("the plan has too few blocks for cache group " + group_);
    return 1 + draw.next(stream.word(drawn++));
  };
  // A sparse cache has too many to name; they are what is left.
  for (std::int64_t block = 0; !config_->sparse && block < config_->spare_blocks; ++block) spare_.push_back(next());
  std::sort(spare_.begin(), spare_.end());
  for (const Request& request : plan.value.geometry.batch) {
    // Rank 0 has the most rows of a request, and a rank's rows have no holes.
    const std::int64_t rows = dcp::local_length(sharding_, request.cached + request.uncached, 0);
    const std::int64_t needed = std::min((rows + kernel_block_size_ - 1) / kernel_block_size_, columns_);
    std::vector<std::int32_t> row(static_cast<std::size_t>(columns_), 0);
    for (std::int64_t column = 0; column < needed; ++column) {
      const std::int64_t id = next();
      if (id > std::numeric_limits<std::int32_t>::max()) throw HarnessError("a kernel block's id is past 2^31");
      row[static_cast<std::size_t>(column)] = static_cast<std::int32_t>(id);
    }
    table_.push_back(std::move(row));
  }
}

std::int64_t GroupMap::slot(std::int64_t request, std::int64_t position, std::int64_t rank) const {
  // A DCP group is W neighbours among the tp ranks.
  if (dcp::owner(sharding_, position) != rank % sharding_.world_size) return -1;
  const std::int64_t local = dcp::local_index(sharding_, position);
  const std::int64_t column = local / kernel_block_size_;
  if (column >= columns_) return -1;
  const std::int64_t id = table_[static_cast<std::size_t>(request)][static_cast<std::size_t>(column)];
  return id * kernel_block_size_ + local % kernel_block_size_;
}

// A quarter -1; the others anywhere but in spare blocks and the last slot of block 0, which faults are to find unowned.
std::vector<std::int64_t> GroupMap::random_slots(std::int64_t rank) const {
  const Stream stream(plan_->value.seed, "slots." + group_, static_cast<std::uint32_t>(rank));
  const auto spare = static_cast<std::int64_t>(spare_.size());
  Draw draw((blocks_ - spare) * kernel_block_size_ - 1);
  std::vector<std::int64_t> out;
  for (std::int64_t token = 0; token < plan_->live; ++token) {
    const PhiloxBlock block = stream.block(static_cast<std::uint64_t>(token));
    if (block[0] % 4 == 0 || draw.left() <= 0) {
      out.push_back(-1);
      continue;
    }
    std::int64_t slot = draw.next(block[2] | static_cast<std::uint64_t>(block[3]) << 32);
    // From the count of allowed slots to the slots: over the last one of block 0, then over each spare block below.
    if (slot >= kernel_block_size_ - 1) ++slot;
    for (const std::int64_t id : spare_) {
      if (slot >= id * kernel_block_size_) slot += kernel_block_size_;
    }
    out.push_back(slot);
  }
  return out;
}

std::vector<std::int64_t> GroupMap::slots(std::int64_t rank) const {
  const Geometry& geometry = plan_->value.geometry;
  if (config_->slot_mapping == "explicit") {
    if (static_cast<std::int64_t>(config_->slots.size()) <= rank)
      throw HarnessError("no explicit slots for rank " + std::to_string(rank));
    return config_->slots[static_cast<std::size_t>(rank)];
  }
  std::vector<std::int64_t> out;
  if (config_->slot_mapping == "random") {
    out = random_slots(rank);
  } else if (by_position()) {
    out.reserve(static_cast<std::size_t>(plan_->tokens));
    for (std::size_t request = 0; request < geometry.batch.size(); ++request) {
      for (std::int64_t token = 0; token < geometry.batch[request].uncached; ++token) {
        out.push_back(slot(static_cast<std::int64_t>(request), geometry.batch[request].cached + token, rank));
      }
    }
  } else {
    throw HarnessError("cache group " + group_ + " has no slots: its slot_mapping is " + config_->slot_mapping);
  }
  out.resize(static_cast<std::size_t>(plan_->tokens), padding_slot(geometry.padding, kernel_block_size_));
  return out;
}

std::vector<std::int64_t> slots_of(const Plan& plan, const std::string& group, std::int64_t rank) {
  return GroupMap(plan, group).slots(rank);
}

std::vector<std::vector<std::int32_t>> block_table(const Plan& plan, const std::string& group) {
  return GroupMap(plan, group).table();
}

std::vector<std::int64_t> geometry_values(const Plan& plan, const TensorPlan& tensor, std::int64_t rank) {
  const Recipe recipe = parse_recipe(tensor.recipe);
  std::vector<std::int64_t> out;
  switch (recipe.kind) {
    case Recipe::Kind::positions: out = positions(plan); break;
    case Recipe::Kind::query_start_loc:
      out.push_back(0);
      for (const Request& request : plan.value.geometry.batch) out.push_back(out.back() + request.uncached);
      break;
    case Recipe::Kind::idx_mapping: out = idx_mapping(plan); break;
    case Recipe::Kind::block_table: out = table_rows(plan, group_of(plan, tensor)); break;
    case Recipe::Kind::slots: out = slots_of(plan, recipe.argument, rank); break;
    case Recipe::Kind::chunk: out = chunk_field(plan, tensor, recipe.argument); break;
    case Recipe::Kind::group: out = group_field(plan, recipe.argument); break;
    default: throw HarnessError(tensor.name + ": its recipe is none of the geometry");
  }
  if (static_cast<std::int64_t>(out.size()) != tensor.rows() * tensor.columns()) {
    throw InputError(tensor.name + " has " + std::to_string(tensor.rows() * tensor.columns()) + " elements, but its recipe " +
                     tensor.recipe + " gives " + std::to_string(out.size()));
  }
  return out;
}

}  // namespace dcpcheck
