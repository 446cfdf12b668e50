#include "properties/settle.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "harness/core/error.hpp"
#include "properties/facts.hpp"

namespace dcpcheck {
namespace {

void settle_groups(const Op& op, Geometry& geometry) {
  for (auto at = geometry.caches.begin(); at != geometry.caches.end();) {
    const bool known = takes_any_groups(op) || std::find(op.caches.begin(), op.caches.end(), at->first) != op.caches.end();
    at = known ? std::next(at) : geometry.caches.erase(at);
  }
  for (auto& [name, group] : geometry.caches) {
    if (group.block_size % group.kernel_block_size != 0) {
      group.kernel_block_size = std::gcd(group.block_size, group.kernel_block_size);
    }
  }
  for (auto& [name, group] : geometry.caches) {
    if (group.slot_mapping != "same") continue;
    const auto mla = geometry.caches.find("mla");
    if (mla == geometry.caches.end() || name == "mla" || mla->second.slot_mapping == "none") {
      group.slot_mapping = "none";
      continue;
    }
    group.block_size = mla->second.block_size;
    group.kernel_block_size = mla->second.kernel_block_size;
    group.spare_blocks = mla->second.spare_blocks;
    group.sparse = mla->second.sparse;
    group.table_columns = 0;
  }
  for (const auto& [name, group] : geometry.caches) {
    if (group.slot_mapping == "dcp") geometry.interleave = std::gcd(geometry.interleave, group.block_size);
    if (!has_free_slots(geometry, group)) continue;
    for (Request& request : geometry.batch) request.cached = 0;
  }
}

// A list for each rank, a slot for each token: what is missing is not owned.
void settle_slots(const Geometry& geometry, CacheGroup& group) {
  if (group.slot_mapping != "explicit") {
    group.slots.clear();
    return;
  }
  group.slots.resize(static_cast<std::size_t>(geometry.tp));
  const auto live = static_cast<std::size_t>(geometry.live_tokens());
  for (auto& rank : group.slots) {
    rank.resize(static_cast<std::size_t>(geometry.tokens()), -1);
    for (std::size_t token = live; token < rank.size(); ++token) {
      if (rank[token] >= 0) rank[token] = -1;
    }
  }
}

void settle_columns(const Case& value, const Geometry& geometry, CacheGroup& group) {
  if (group.table_columns == 0 || group.table_columns >= columns_needed(geometry, group)) return;
  const auto option = value.contract.find("column_overflow");
  if (option == value.contract.end() || option->second != "minus_one") group.table_columns = 0;
}

void settle_chunk(Geometry& geometry) {
  const std::int64_t turn = geometry.world_size * geometry.interleave;
  geometry.chunk.start -= geometry.chunk.start % turn;
  if (geometry.chunk.tokens % turn == 0) return;
  geometry.chunk.tokens = std::max(geometry.chunk.tokens - geometry.chunk.tokens % turn, turn);
}

void drop_absent_tensors(const Op& op, Case& value) {
  if (value.layout.empty() && value.values.empty()) return;
  const Environment environment = environment_of(op, value);
  const auto holds = [&](const Expression& that) {
    try {
      return that.empty() || that.truth(environment);
    } catch (const InputError&) {
      return false;  // a rule of the op's is broken, and is yet to be mended
    }
  };
  for (const TensorSpec& spec : op.tensors) {
    const bool present = holds(spec.when);
    const bool in_place = !spec.in_place_of.empty() && holds(spec.in_place_when);
    if (!present) value.values.erase(spec.name);
    for (auto at = value.layout.begin(); at != value.layout.end();) {
      const std::string& name = at->first;
      const bool own = name == spec.name || (spec.per_group && name.starts_with(spec.name + "."));
      const bool grouped = !spec.per_group || (name.size() > spec.name.size() &&
                                               value.geometry.caches.contains(name.substr(spec.name.size() + 1)));
      at = own && (!present || in_place || !grouped) ? value.layout.erase(at) : std::next(at);
    }
  }
}

}  // namespace

void settle(const Op& op, Case& value) {
  Geometry& geometry = value.geometry;
  if (geometry.tp % geometry.world_size != 0) {
    geometry.tp = geometry.world_size * std::max<std::int64_t>(geometry.tp / geometry.world_size, 1);
  }
  if (geometry.padding.tokens == 0) geometry.padding = {};
  settle_groups(op, geometry);
  for (auto& [name, group] : geometry.caches) {
    settle_slots(geometry, group);
    settle_columns(value, geometry, group);
  }
  settle_chunk(geometry);
  if (geometry.max_batched_tokens < geometry.tokens()) geometry.max_batched_tokens = 0;
  drop_absent_tensors(op, value);
  for (auto at = value.values.begin(); at != value.values.end();) {
    const TensorSpec* const spec = op.tensor(at->first);
    at = spec != nullptr && spec->values == at->second ? value.values.erase(at) : std::next(at);
  }
}

}  // namespace dcpcheck
