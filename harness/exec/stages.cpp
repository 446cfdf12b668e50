#include "harness/exec/stages.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "harness/core/error.hpp"
#include "harness/core/geometry_inputs.hpp"

namespace dcpcheck {
namespace {

// Launches over tokens [from(request), to(request)) of each request, `budget` tokens at a time.
template <class From, class To>
void add_launches(std::vector<Stage>& stages, Stage::Kind kind, const std::string& name, const Geometry& geometry, From from,
                  To to) {
  const std::int64_t budget =
      geometry.max_batched_tokens == 0 ? std::numeric_limits<std::int64_t>::max() : geometry.max_batched_tokens;
  Stage stage;
  std::int64_t launch = 0, room = budget;
  const auto flush = [&] {
    if (stage.slices.empty()) return;
    stage.kind = kind;
    stage.name = name + "." + std::to_string(launch++);
    stages.push_back(std::exchange(stage, {}));
    room = budget;
  };
  for (std::size_t request = 0; request < geometry.batch.size(); ++request) {
    const std::int64_t end = to(geometry.batch[request]);
    for (std::int64_t at = from(geometry.batch[request]); at < end;) {
      const std::int64_t tokens = std::min(end - at, room);
      stage.slices.push_back({static_cast<std::int64_t>(request), at, tokens});
      at += tokens;
      room -= tokens;
      if (room == 0) flush();
    }
  }
  flush();
}

std::int64_t kernel_blocks(const Geometry& geometry, const CacheGroup& group) {
  const std::int64_t ranks = group.slot_mapping == "dcp" ? geometry.world_size : 1;
  const std::int64_t virtual_block = group.block_size * ranks;
  std::int64_t blocks = 0;
  for (const Request& request : geometry.batch)
    blocks += (request.cached + request.uncached + virtual_block - 1) / virtual_block;
  return blocks * (group.block_size / group.kernel_block_size);
}

}  // namespace

bool has_own_map(const CacheGroup& group) { return group.slot_mapping == "dcp" || group.slot_mapping == "replicated"; }

std::int64_t Stage::tokens() const {
  std::int64_t sum = 0;
  for (const Slice& slice : slices) sum += slice.tokens;
  return sum;
}

std::vector<Stage> stages_of(const Case& value) {
  std::vector<Stage> stages;
  const Geometry& geometry = value.geometry;
  add_launches(
      stages, Stage::Kind::prefix, "prefix", geometry, [](const Request&) { return std::int64_t{0}; },
      [](const Request& request) { return request.cached; });
  add_launches(
      stages, Stage::Kind::prefill, "prefill", geometry, [](const Request& request) { return request.cached; },
      [](const Request& request) { return request.cached + request.uncached; });
  for (std::int64_t step = 0; step + 1 < value.integer("tokens"); ++step) {
    Stage stage{Stage::Kind::decode, "decode." + std::to_string(step), {}};
    for (std::size_t request = 0; request < geometry.batch.size(); ++request) {
      const Request& prompt = geometry.batch[request];
      stage.slices.push_back({static_cast<std::int64_t>(request), prompt.cached + prompt.uncached + step, 1});
    }
    stages.push_back(std::move(stage));
  }
  return stages;
}

std::vector<std::int64_t> final_lengths(const Case& value) {
  std::vector<std::int64_t> lengths;
  for (const Request& request : value.geometry.batch)
    lengths.push_back(request.cached + request.uncached + value.integer("tokens") - 1);
  return lengths;
}

Blocks blocks_of(const Op& slot_mapping, const Case& value) {
  Case whole = part_case(slot_mapping, value);
  whole.geometry.max_batched_tokens = 0;
  whole.geometry.batch.clear();
  for (const std::int64_t length : final_lengths(value)) whole.geometry.batch.push_back({0, length});
  std::erase_if(whole.geometry.caches, [](const auto& entry) { return !has_own_map(entry.second); });
  const Plan plan = make_plan(slot_mapping, whole, std::numeric_limits<std::int64_t>::max());
  Blocks blocks;
  for (const auto& [name, group] : whole.geometry.caches) {
    Blocks::Group made;
    made.blocks = std::get<std::int64_t>(plan.environment.at(name + ".blocks"));
    made.table = GroupMap(plan, name).table();
    made.columns = std::get<std::int64_t>(plan.environment.at(name + ".table_columns"));
    blocks.groups.emplace(name, std::move(made));
  }
  return blocks;
}

Case part_case(const Op& op, const Case& value) {
  Case part;
  part.op = op.name;
  part.seed = value.seed;
  part.geometry = value.geometry;
  for (auto& [name, group] : part.geometry.caches) group.enabled = true;
  for (const Param& param : op.params) {
    const auto common = value.params.find(param.name);
    part.params[param.name] = common == value.params.end() ? param.value : common->second;
  }
  for (const Option& option : op.contract) {
    const auto common = value.contract.find(option.name);
    part.contract[option.name] = common == value.contract.end() ? option.values.front() : common->second;
  }
  return part;
}

Case part_case(const Op& op, const Case& value, const std::vector<Slice>& slices, const Blocks& blocks) {
  Case part = part_case(op, value);
  part.geometry.max_batched_tokens = 0;
  part.geometry.batch.clear();
  for (const Slice& slice : slices) part.geometry.batch.push_back({slice.cached, slice.tokens});
  std::erase_if(part.geometry.caches, [&](const auto& entry) {
    const bool any = std::find(op.caches.begin(), op.caches.end(), "*") != op.caches.end();
    if (any) return !has_own_map(entry.second);
    return std::find(op.caches.begin(), op.caches.end(), entry.first) == op.caches.end();
  });
  // As many blocks and columns as in the end, whatever this launch needs of them.
  for (auto& [name, group] : part.geometry.caches) {
    const auto whole = blocks.groups.find(name);
    if (whole == blocks.groups.end()) continue;
    group.spare_blocks = whole->second.blocks - 1 - kernel_blocks(part.geometry, group);
    group.table_columns = whole->second.columns;
  }
  Geometry whole = value.geometry;
  whole.batch.clear();
  for (const std::int64_t length : final_lengths(value)) whole.batch.push_back({0, length});
  for (auto& [name, group] : part.geometry.caches) {
    // Nothing is written to it, and yet it goes from launch to launch, as large as ever.
    if (group.slot_mapping == "none") group.spare_blocks += kernel_blocks(whole, group) - kernel_blocks(part.geometry, group);
    if (group.slot_mapping == "same") group.spare_blocks = part.geometry.caches.at("mla").spare_blocks;
  }
  return part;
}

Case norm_case(const Op& fused_norm_rope, const Case& value, const Stage& stage, const Blocks& blocks) {
  Case part = part_case(fused_norm_rope, value, stage.slices, blocks);
  const bool keys = stage.kind != Stage::Kind::decode;
  if (keys) part.geometry.max_batched_tokens = std::max(value.geometry.max_batched_tokens, stage.tokens());
  part.params["kv_c_out"] = keys;
  part.params["k_pe_out"] = keys && value.integer("qk_rope_head_dim") > 0;
  part.params["index_k_out"] = false;
  return part;
}

std::vector<ChunkRange> context_chunks(const Case& value, const std::vector<Slice>& slices) {
  std::int64_t longest = 0, with_context = 0;
  for (const Slice& slice : slices) {
    longest = std::max(longest, slice.cached);
    with_context += slice.cached > 0 ? 1 : 0;
  }
  std::vector<ChunkRange> chunks;
  if (longest == 0) return chunks;
  const std::int64_t turn = value.geometry.world_size * value.geometry.interleave;
  const std::int64_t tokens = std::max<std::int64_t>(value.integer("context_workspace") / with_context / turn, 1) * turn;
  for (std::int64_t start = 0; start < longest; start += tokens) chunks.push_back({start, tokens});
  return chunks;
}

}  // namespace dcpcheck
