// The rules that join several fields of a case, and what expressions see of it.
#include "harness/core/case_rules.hpp"

#include <algorithm>
#include <set>

#include "harness/core/case.hpp"
#include "harness/core/chunk.hpp"
#include "harness/core/error.hpp"
#include "harness/core/reader.hpp"

namespace dcpcheck {
namespace {

// The most columns that any request needs of a group's table.
std::int64_t columns_needed(const Geometry& geometry, const CacheGroup& group) {
  const std::int64_t ranks = group.slot_mapping == "dcp" ? geometry.world_size : 1;
  std::int64_t columns = 1;
  for (const Request& request : geometry.batch) {
    const std::int64_t virtual_block = group.block_size * ranks;
    const std::int64_t blocks = (request.cached + request.uncached + virtual_block - 1) / virtual_block;
    columns = std::max(columns, blocks * (group.block_size / group.kernel_block_size));
  }
  return columns;
}

// `source` may end in the pointer under which the case stands in its file ("f.json: /case").
void check(bool rule, const std::string& source, const std::string& sentence) {
  if (rule) return;
  constexpr std::string_view kUnder = ": /case";
  if (!source.ends_with(kUnder)) throw InputError(source + ": " + sentence);
  if (sentence.starts_with('/')) throw InputError(source + sentence);
  throw InputError(source.substr(0, source.size() - kUnder.size()) + ": " + sentence);
}

// `sentence` with each {name} replaced by what the environment says of it.
std::string filled_in(const std::string& sentence, const Environment& environment) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t open = sentence.find('{'); open != std::string::npos; open = sentence.find('{', at)) {
    const std::size_t close = sentence.find('}', open);
    if (close == std::string::npos) break;
    const auto term = environment.find(sentence.substr(open + 1, close - open - 1));
    out += sentence.substr(at, open - at);
    if (term == environment.end()) {
      out += sentence.substr(open, close + 1 - open);
    } else if (const auto* number = std::get_if<std::int64_t>(&term->second)) {
      out += std::to_string(*number);
    } else {
      out += std::get<std::string>(term->second);
    }
    at = close + 1;
  }
  return out + sentence.substr(at);
}

void validate_group(const Op& op, const Case& value, const std::string& name, const std::string& source) {
  const Geometry& geometry = value.geometry;
  const CacheGroup& group = geometry.caches.at(name);
  const std::string at = "/geometry/caches/" + name;
  check(group.block_size % group.kernel_block_size == 0, source,
        at + "/kernel_block_size is " + std::to_string(group.kernel_block_size) + ", which does not divide block_size " +
            std::to_string(group.block_size));
  check(group.slot_mapping != "dcp" || group.block_size % geometry.interleave == 0, source,
        "/geometry/dcp/interleave is " + std::to_string(geometry.interleave) + ", which does not divide " + at +
            "/block_size " + std::to_string(group.block_size) + ": the slots of two tokens would be one");
  check((group.slot_mapping == "explicit") == !group.slots.empty(), source,
        at + "/slots goes with slot_mapping \"explicit\", and that with it");
  if (group.slot_mapping == "same") {
    const auto mla = geometry.caches.find("mla");
    check(name != "mla" && mla != geometry.caches.end() && mla->second.slot_mapping != "none", source,
          at + "/slot_mapping is \"same\", but there is no mla cache with a slot mapping to be the same as");
    check(mla->second.block_size == group.block_size && mla->second.kernel_block_size == group.kernel_block_size &&
              mla->second.spare_blocks == group.spare_blocks && mla->second.sparse == group.sparse && group.table_columns == 0,
          source,
          at + "/slot_mapping is \"same\", so block_size, kernel_block_size, spare_blocks and sparse must be those of the mla "
               "cache");
  }
  check(!group.sparse || may_be_sparse(op, name), source,
        at + "/sparse is true, but " + op.name + " is no single launch that writes records of the group and reads none");
  if (group.slot_mapping == "explicit") {
    check(static_cast<std::int64_t>(group.slots.size()) == geometry.tp, source,
          at + "/slots has " + std::to_string(group.slots.size()) + " lists, but there are " + std::to_string(geometry.tp) +
              " ranks");
    for (std::size_t rank = 0; rank < group.slots.size(); ++rank) {
      check(static_cast<std::int64_t>(group.slots[rank].size()) == geometry.tokens(), source,
            at + "/slots/" + std::to_string(rank) + " has " + std::to_string(group.slots[rank].size()) +
                " slots, but the launch has " + std::to_string(geometry.tokens()) + " tokens");
      std::set<std::int64_t> seen;
      for (std::int64_t token = geometry.live_tokens(); token < geometry.tokens(); ++token) {
        const std::int64_t slot = group.slots[rank][static_cast<std::size_t>(token)];
        check(slot < 0, source,
              at + "/slots/" + std::to_string(rank) + "/" + std::to_string(token) + " is " + std::to_string(slot) +
                  ", but the token is padding, which has no slot of its own");
      }
      for (const std::int64_t slot : group.slots[rank]) {
        check(slot < 0 || seen.insert(slot).second, source,
              at + "/slots/" + std::to_string(rank) + " gives the slot " + std::to_string(slot) + " to two tokens");
      }
    }
  }
  const bool mapped_by_position = group.slot_mapping == "dcp" || group.slot_mapping == "replicated";
  check(mapped_by_position ||
            std::none_of(geometry.batch.begin(), geometry.batch.end(), [](const Request& r) { return r.cached > 0; }) ||
            group.slot_mapping == "none" || group.slot_mapping == "same" ||
            // Where their rows lie is not said, nor looked at: they only move the positions of the others.
            (group.slot_mapping == "explicit" && may_be_sparse(op, name)),
        source, at + "/slot_mapping is \"" + group.slot_mapping + "\", which has no place for cached tokens");
  if (group.table_columns != 0 && group.table_columns < columns_needed(geometry, group)) {
    const auto option = value.contract.find("column_overflow");
    check(option != value.contract.end() && option->second == "minus_one", source,
          at + "/table_columns is " + std::to_string(group.table_columns) + ", but the longest request needs " +
              std::to_string(columns_needed(geometry, group)) + ", and the contract does not say column_overflow: minus_one");
  }
  // A kernel that only computes slots has no cache to leave out or to map otherwise.
  if (op.caches == std::vector<std::string>{"*"}) {
    check(mapped_by_position, source,
          at + "/slot_mapping is \"" + group.slot_mapping + "\", but " + op.name + " needs dcp or replicated");
  }
}

}  // namespace

bool may_be_sparse(const Op& op, std::string_view group) {
  const auto has = [&](Role role) {
    return std::any_of(op.tensors.begin(), op.tensors.end(),
                       [&](const TensorSpec& tensor) { return tensor.cache == group && tensor.role == role; });
  };
  return op.pipeline.empty() && has(Role::cache) && !has(Role::in);
}

std::int64_t Geometry::live_tokens() const {
  std::int64_t tokens = 0;
  for (const Request& request : batch) tokens += request.uncached;
  return tokens;
}

Environment environment_of(const Op& op, const Case& value) {
  const Geometry& geometry = value.geometry;
  Environment out;
  for (const auto& [name, param] : value.params) {
    if (const bool* flag = std::get_if<bool>(&param)) out[name] = std::int64_t{*flag};
    if (const auto* number = std::get_if<std::int64_t>(&param)) out[name] = *number;
    if (const auto* choice = std::get_if<std::string>(&param)) out[name] = *choice;
    // Numbers are no terms: no size depends on an epsilon.
  }
  for (const auto& [name, choice] : value.contract) out["option." + name] = choice;
  std::int64_t last = -1, cached = 0, idle = 0;
  for (const Request& request : geometry.batch) {
    cached += request.cached;
    idle += request.uncached == 0 ? 1 : 0;
    if (request.uncached > 0) last = std::max(last, request.cached + request.uncached - 1);
  }
  out["T"] = geometry.tokens();
  out["live"] = geometry.live_tokens();
  out["capacity"] = std::max(geometry.max_batched_tokens, geometry.tokens());
  out["R"] = static_cast<std::int64_t>(geometry.batch.size());
  out["G"] = static_cast<std::int64_t>(geometry.caches.size());
  out["tp"] = geometry.tp;
  out["W"] = geometry.world_size;
  out["I"] = geometry.interleave;
  out["last_position"] = last;
  out["cached"] = cached;
  out["idle"] = idle;
  out["padding.in_range"] = std::int64_t{geometry.padding.tokens == 0 || geometry.padding.positions != "stale"};
  for (const std::string& name : op.caches) {
    if (name != "*") out[name + ".present"] = std::int64_t{0};
  }
  for (const auto& [name, group] : geometry.caches) {
    std::int64_t kernel_blocks = 0;
    const std::int64_t per_block = group.block_size / group.kernel_block_size;
    const bool sharded = (group.slot_mapping == "same" ? geometry.caches.at("mla") : group).slot_mapping == "dcp";
    const std::int64_t ranks = sharded ? geometry.world_size : 1;
    for (const Request& request : geometry.batch) {
      const std::int64_t virtual_block = group.block_size * ranks;
      kernel_blocks += (request.cached + request.uncached + virtual_block - 1) / virtual_block * per_block;
    }
    out[name + ".present"] = std::int64_t{1};
    out[name + ".sharded"] = std::int64_t{sharded};
    out[name + ".mapped"] = std::int64_t{group.slot_mapping != "none"};
    out[name + ".own_map"] = std::int64_t{group.slot_mapping != "same" && group.slot_mapping != "none"};
    out[name + ".block_size"] = group.block_size;
    out[name + ".kernel_block_size"] = group.kernel_block_size;
    out[name + ".block_stride_padding"] = group.block_stride_padding;
    out[name + ".table_columns"] = group.table_columns != 0 ? group.table_columns : columns_needed(geometry, group);
    out[name + ".blocks"] = 1 + kernel_blocks + group.spare_blocks;
    const ChunkPlan chunk = plan_chunk(geometry, group);
    out[name + ".chunk_rows"] = chunk.local_rows;
    out[name + ".context_rows"] = chunk.context_rows;
  }
  return out;
}

void validate(const Op& op, const Case& value, const std::string& source) {
  const Geometry& geometry = value.geometry;
  check(geometry.tp % geometry.world_size == 0, source,
        "/geometry/dcp/world_size is " + std::to_string(geometry.world_size) + ", which does not divide /geometry/tp " +
            std::to_string(geometry.tp));
  // A pipeline takes as many launches as it needs.
  check(geometry.max_batched_tokens == 0 || !op.pipeline.empty() || geometry.max_batched_tokens >= geometry.tokens(), source,
        "/geometry/max_batched_tokens is " + std::to_string(geometry.max_batched_tokens) + ", less than the launch's " +
            std::to_string(geometry.tokens()) + " tokens");
  check(geometry.tokens() <= (std::int64_t{1} << 24), source, "a launch has at most 2^24 tokens");
  for (const auto& [name, group] : geometry.caches) validate_group(op, value, name, source);
  const Environment environment = environment_of(op, value);
  for (const auto& [name, group] : geometry.caches) {
    const std::int64_t slots = std::get<std::int64_t>(environment.at(name + ".blocks")) * group.kernel_block_size;
    for (const auto& ranks : group.slots) {
      for (const std::int64_t slot : ranks) {
        check(slot < slots, source,
              "/geometry/caches/" + name + "/slots has the slot " + std::to_string(slot) + ", but the cache has " +
                  std::to_string(slots));
      }
    }
    const auto arithmetic = value.contract.find("slot_arithmetic");
    check(arithmetic == value.contract.end() || arithmetic->second != "i32" || slots < (std::int64_t{1} << 31), source,
          "slot_arithmetic i32 needs fewer than 2^31 slots");
  }
  const std::int64_t turn = geometry.world_size * geometry.interleave;
  check(geometry.chunk.start % turn == 0 && geometry.chunk.tokens % turn == 0, source,
        "/geometry/chunk/start and tokens must be multiples of world_size * interleave, which is " + std::to_string(turn) +
            ": a chunk must be a run of rows on every rank");
  for (const Requirement& rule : op.require) check(rule.that.truth(environment), source, filled_in(rule.say, environment));
}

}  // namespace dcpcheck
