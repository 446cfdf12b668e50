#include "properties/facts.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "harness/core/case_rules.hpp"
#include "harness/core/chunk.hpp"
#include "harness/core/dcp.hpp"

namespace dcpcheck {
namespace {

constexpr std::int64_t kMany = std::int64_t{1} << 53;

// A dimension whose buckets are ranges of a number.
GeometryDimension ranged(std::string name, const Ranges& ranges, std::function<std::int64_t(const Geometry&)> number) {
  return {std::move(name), names_of(ranges),
          [&ranges, number = std::move(number)](const Geometry& geometry) { return bucket_in(ranges, number(geometry)); }};
}

// A dimension of a cache group; -1 where the group is absent.
GeometryDimension of_group(const std::string& group, const std::string& field, std::vector<std::string> buckets,
                           std::function<int(const Geometry&, const CacheGroup&)> bucket) {
  return {group + "." + field, std::move(buckets), [group, bucket = std::move(bucket)](const Geometry& geometry) {
            const auto found = geometry.caches.find(group);
            return found == geometry.caches.end() ? -1 : bucket(geometry, found->second);
          }};
}

int index_of(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

// How many rows each rank of a DCP group owns of what the launch is about: the chunk's context rows, or its own tokens.
std::vector<std::int64_t> owned_rows(const Op& op, const Geometry& geometry, const CacheGroup& group) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(geometry.world_size));
  const dcp::Sharding sharding{group.block_size, geometry.world_size, geometry.interleave};
  for (std::int64_t rank = 0; rank < geometry.world_size; ++rank) {
    std::int64_t& owned = rows[static_cast<std::size_t>(rank)];
    if (uses(op, "chunk")) {
      const ChunkPlan chunk = plan_chunk(geometry, group);
      for (std::size_t i = 0; i < chunk.requests.size(); ++i) owned += chunk.valid_rows(i, rank);
      continue;
    }
    for (const Request& request : geometry.batch) {
      owned += dcp::local_length(sharding, request.cached + request.uncached, rank) -
               dcp::local_length(sharding, request.cached, rank);
    }
  }
  return rows;
}

std::int64_t longest_context(const Geometry& geometry) {
  std::int64_t longest = 0;
  for (const Request& request : geometry.batch) longest = std::max(longest, request.cached);
  return longest;
}

}  // namespace

bool uses(const Op& op, std::string_view geometry_field) {
  return std::find(op.geometry.begin(), op.geometry.end(), geometry_field) != op.geometry.end();
}

bool takes_any_groups(const Op& op) { return op.caches == std::vector<std::string>{"*"}; }

std::vector<std::string> groups_of(const Op& op) {
  if (!uses(op, "caches")) return {};
  if (takes_any_groups(op)) return {"full", "window", "tail"};
  return op.caches;
}

std::vector<std::string> names_in(const Expression& expression) {
  const std::string& text = expression.text();
  std::vector<std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\'') {
      const std::size_t end = text.find('\'', at + 1);
      at = end == std::string::npos ? text.size() : end + 1;
      continue;
    }
    const auto part_of_name = [&](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; };
    std::size_t end = at;
    while (end < text.size() && part_of_name(text[end])) ++end;
    if (end == at) {
      ++at;
      continue;
    }
    const std::string name = text.substr(at, end - at);
    if (std::isdigit(static_cast<unsigned char>(name.front())) == 0) names.push_back(name);
    at = end;
  }
  return names;
}

bool mentions(const Expression& expression, std::string_view name) {
  const std::vector<std::string> names = names_in(expression);
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool launches_tokens(const Op& op) {
  return std::any_of(op.tensors.begin(), op.tensors.end(), [](const TensorSpec& tensor) {
    return std::any_of(tensor.shape.begin(), tensor.shape.end(), [](const Expression& axis) {
      return mentions(axis, "T") || mentions(axis, "live") || mentions(axis, "capacity");
    });
  });
}

bool has_context(const Op& op) { return uses(op, "caches") || has_input(op, "positions"); }

bool has_input(const Op& op, std::string_view recipe) {
  return std::any_of(op.tensors.begin(), op.tensors.end(), [&](const TensorSpec& tensor) {
    return tensor.role == Role::in && (recipe.ends_with(':') ? tensor.values.starts_with(recipe) : tensor.values == recipe);
  });
}

bool has_padding_values(const Op& op) {
  return std::any_of(op.tensors.begin(), op.tensors.end(), [](const TensorSpec& tensor) {
    return tensor.role == Role::in && !tensor.shape.empty() && tensor.shape.front().text() == "T" &&
           (tensor.recipe_settable || tensor.strided);
  });
}

bool meets_keys(const Op& op) { return has_input(op, "query_start_loc") && has_padding_values(op); }

bool has_records(const Op& op, std::string_view group) {
  if (runs_pipeline(op)) return true;  // its parts have the tensors
  return std::any_of(op.tensors.begin(), op.tensors.end(), [&](const TensorSpec& tensor) { return tensor.cache == group; });
}

bool runs_pipeline(const Op& op) { return !op.pipeline.empty(); }

std::vector<std::string> slot_mappings_of(const Op& op, const std::string& group) {
  if (takes_any_groups(op)) {
    if (group == groups_of(op).front()) return {"dcp", "replicated"};
    return {"absent", "dcp", "replicated"};
  }
  const bool reads = uses(op, "chunk") || std::any_of(op.tensors.begin(), op.tensors.end(), [&](const TensorSpec& tensor) {
                       return tensor.cache == group && tensor.role == Role::in;
                     });
  if (reads) return {"absent", "dcp", "replicated"};
  std::vector<std::string> out = {"absent", "dcp", "replicated"};
  // In a pipeline slots follow from positions: what one launch writes another one reads.
  if (!runs_pipeline(op)) out.insert(out.end(), {"random", "explicit"});
  out.emplace_back("none");
  // "same" is the same as "mla" is.
  if (group != "mla" && std::find(op.caches.begin(), op.caches.end(), "mla") != op.caches.end()) out.emplace_back("same");
  return out;
}

const std::string& recipe_of(const Case& value, const TensorSpec& input) {
  const auto given = value.values.find(input.name);
  return given == value.values.end() ? input.values : given->second;
}

bool is_sharded(const Geometry& geometry, const CacheGroup& group) {
  if (group.slot_mapping != "same") return group.slot_mapping == "dcp";
  const auto mla = geometry.caches.find("mla");
  return mla != geometry.caches.end() && mla->second.slot_mapping == "dcp";
}

bool has_free_slots(const Geometry& geometry, const CacheGroup& group) {
  const CacheGroup* mapped = &group;
  if (const auto mla = geometry.caches.find("mla"); group.slot_mapping == "same" && mla != geometry.caches.end()) {
    mapped = &mla->second;
  }
  return mapped->slot_mapping == "random" || mapped->slot_mapping == "explicit";
}

Lead lead_of(const Op& op, const Geometry& geometry) {
  for (const std::string& name : groups_of(op)) {
    const auto found = geometry.caches.find(name);
    if (found == geometry.caches.end()) continue;
    const bool sharded = is_sharded(geometry, found->second);
    const std::int64_t block = found->second.block_size;
    return {name, {block, block * (sharded ? geometry.world_size : 1)}, sharded};
  }
  return {};
}

std::int64_t columns_needed(const Geometry& geometry, const CacheGroup& group) {
  const std::int64_t span = group.block_size * (group.slot_mapping == "dcp" ? geometry.world_size : 1);
  std::int64_t columns = 1;
  for (const Request& request : geometry.batch) {
    const std::int64_t blocks = (request.cached + request.uncached + span - 1) / span;
    columns = std::max(columns, blocks * (group.block_size / group.kernel_block_size));
  }
  return columns;
}

const Ranges& world_sizes() {
  static const Ranges ranges = {{"1", 1, 1}, {"2", 2, 2}, {"3", 3, 3}, {"4", 4, 4}, {"8", 8, 8}, {"other", 5, kMany}};
  return ranges;
}

const Ranges& rank_groups() {
  static const Ranges ranges = {{"1", 1, 1}, {"2", 2, 2}, {"3 or more", 3, kMany}};
  return ranges;
}

const Ranges& request_counts() {
  static const Ranges ranges = {{"0", 0, 0}, {"1", 1, 1}, {"2", 2, 2}, {"3-8", 3, 8}, {"9 or more", 9, kMany}};
  return ranges;
}

const Ranges& token_counts() {
  static const Ranges ranges = {{"0", 0, 0},       {"1", 1, 1},         {"2-16", 2, 16},
                                {"17-64", 17, 64}, {"65-256", 65, 256}, {"257 or more", 257, kMany}};
  return ranges;
}

const Ranges& padding_counts() {
  static const Ranges ranges = {{"0", 0, 0}, {"1", 1, 1}, {"2-8", 2, 8}, {"9 or more", 9, kMany}};
  return ranges;
}

const Ranges& spare_counts(const Op& op, std::string_view group) {
  static const Ranges few = {{"1", 1, 1}, {"2", 2, 2}, {"3 or more", 3, kMany}};
  static const Ranges any = {{"1", 1, 1}, {"2", 2, 2}, {"3 or more", 3, kManyBlocks - 1}, {"4096 or more", kManyBlocks, kMany}};
  return has_records(op, group) ? few : any;
}

GeometryDimensions rank_dimensions(const Op& op) {
  GeometryDimensions out;
  if (uses(op, "dcp")) {
    out.push_back(ranged("world_size", world_sizes(), [](const Geometry& geometry) { return geometry.world_size; }));
  }
  if (uses(op, "tp")) {
    out.push_back(
        ranged("rank_groups", rank_groups(), [](const Geometry& geometry) { return geometry.tp / geometry.world_size; }));
  }
  return out;
}

GeometryDimensions group_dimensions(const Op& op, const std::string& name) {
  GeometryDimensions out;
  const std::vector<std::string> mappings = slot_mappings_of(op, name);
  out.push_back({name + ".slot_mapping", mappings, [name, mappings](const Geometry& geometry) {
                   const auto found = geometry.caches.find(name);
                   return index_of(mappings, found == geometry.caches.end() ? "absent" : found->second.slot_mapping);
                 }});
  out.push_back(of_group(name, "block_size", {"1", "2-15", "2^k", "other"}, [](const Geometry&, const CacheGroup& group) {
    const std::int64_t size = group.block_size;
    return size == 1 ? 0 : size < 16 ? 1 : (size & (size - 1)) == 0 ? 2 : 3;
  }));
  out.push_back(of_group(name, "kernel_blocks", {"one", "rows", "some"}, [](const Geometry&, const CacheGroup& group) {
    return group.kernel_block_size == group.block_size ? 0 : group.kernel_block_size == 1 ? 1 : 2;
  }));
  const Ranges& spare = spare_counts(op, name);
  out.push_back(of_group(name, "spare_blocks", names_of(spare),
                         [&spare](const Geometry&, const CacheGroup& group) { return bucket_in(spare, group.spare_blocks); }));
  if (has_records(op, name)) {
    out.push_back(
        of_group(name, "block_stride_padding", {"0", "of 16", "of 4", "other"}, [](const Geometry&, const CacheGroup& group) {
          const std::int64_t bytes = group.block_stride_padding;
          return bytes == 0 ? 0 : bytes % 16 == 0 ? 1 : bytes % 4 == 0 ? 2 : 3;
        }));
  }
  if (may_be_sparse(op, name)) {
    out.push_back(of_group(name, "sparse", {"false", "true"},
                           [](const Geometry&, const CacheGroup& group) { return group.sparse ? 1 : 0; }));
  }
  if (has_input(op, "group:enabled")) {
    out.push_back(of_group(name, "enabled", {"true", "false"},
                           [](const Geometry&, const CacheGroup& group) { return group.enabled ? 0 : 1; }));
  }
  return out;
}

GeometryDimensions interleave_dimensions(const Op& op) {
  if (!uses(op, "dcp") || !uses(op, "caches")) return {};
  return {{"interleave", {"1", "B", "over Bk", "other"}, [&op](const Geometry& geometry) {
             if (geometry.interleave == 1) return 0;
             const Lead lead = lead_of(op, geometry);
             if (!lead.sharded) return 3;
             const CacheGroup& group = geometry.caches.at(lead.name);
             return geometry.interleave == group.block_size ? 1 : geometry.interleave > group.kernel_block_size ? 2 : 3;
           }}};
}

namespace {

GeometryDimension owners_dimension(const Op& op) {
  return {"owners", {"no rank", "one rank", "some ranks", "all ranks"}, [&op](const Geometry& geometry) {
            const Lead lead = lead_of(op, geometry);
            if (!lead.sharded || geometry.world_size == 1) return -1;
            const auto rows = owned_rows(op, geometry, geometry.caches.at(lead.name));
            const auto owners = std::count_if(rows.begin(), rows.end(), [](std::int64_t n) { return n > 0; });
            return owners <= 1 ? static_cast<int>(owners) : owners < geometry.world_size ? 2 : 3;
          }};
}

}  // namespace

GeometryDimensions batch_dimensions(const Op& op) {
  GeometryDimensions out;
  if (!uses(op, "batch")) return out;
  const bool launches = launches_tokens(op), context = has_context(op);
  out.push_back(ranged("requests", request_counts(),
                       [](const Geometry& geometry) { return static_cast<std::int64_t>(geometry.batch.size()); }));
  if (launches) {
    out.push_back(ranged("live_tokens", token_counts(), [](const Geometry& geometry) { return geometry.live_tokens(); }));
  }
  // The boundaries are those of the first request: one request's length is one bucket.
  const auto first = [&](const std::string& field, const std::function<std::int64_t(const Request&)>& tokens) {
    out.push_back({"first." + field, length_buckets(uses(op, "caches")), [&op, tokens](const Geometry& geometry) {
                     if (geometry.batch.empty()) return -1;
                     return bucket_of(lead_of(op, geometry).lengths, tokens(geometry.batch.front()));
                   }});
  };
  if (launches) first("uncached", [](const Request& request) { return request.uncached; });
  if (context) first("cached", [](const Request& request) { return request.cached; });
  if (launches && context) first("total", [](const Request& request) { return request.cached + request.uncached; });
  if (uses(op, "caches")) {
    out.push_back({"first.blocks", {"0", "1", "under W", "W or more"}, [&op](const Geometry& geometry) {
                     const Lead lead = lead_of(op, geometry);
                     const std::int64_t block = lead.lengths.block;
                     if (geometry.batch.empty() || block == 0) return -1;
                     const Request& request = geometry.batch.front();
                     const std::int64_t blocks = (request.cached + request.uncached + block - 1) / block;
                     return blocks <= 1 ? static_cast<int>(blocks) : blocks < geometry.world_size ? 2 : 3;
                   }});
  }
  if (launches) {
    out.push_back({"idle_requests", {"none", "some", "all"}, [](const Geometry& geometry) {
                     const auto idle = std::count_if(geometry.batch.begin(), geometry.batch.end(),
                                                     [](const Request& request) { return request.uncached == 0; });
                     if (geometry.batch.empty()) return -1;
                     return idle == 0 ? 0 : idle == static_cast<std::ptrdiff_t>(geometry.batch.size()) ? 2 : 1;
                   }});
  }
  if (context) {
    out.push_back({"new_requests", {"none", "some", "all"}, [](const Geometry& geometry) {
                     const auto fresh = std::count_if(geometry.batch.begin(), geometry.batch.end(),
                                                      [](const Request& request) { return request.cached == 0; });
                     if (geometry.batch.empty()) return -1;
                     return fresh == 0 ? 0 : fresh == static_cast<std::ptrdiff_t>(geometry.batch.size()) ? 2 : 1;
                   }});
  }
  // With chunks it is a matter of those.
  if (uses(op, "caches") && uses(op, "dcp") && !uses(op, "chunk")) out.push_back(owners_dimension(op));
  return out;
}

GeometryDimensions chunk_dimensions(const Op& op) {
  if (!uses(op, "chunk")) return {};
  GeometryDimensions out;
  out.push_back({"chunk.start", {"0", "inside", "past some", "past all"}, [](const Geometry& geometry) {
                   if (geometry.caches.empty()) return -1;
                   if (geometry.chunk.start == 0) return 0;
                   if (geometry.chunk.start >= longest_context(geometry)) return 3;
                   const bool past = std::any_of(geometry.batch.begin(), geometry.batch.end(), [&](const Request& request) {
                     return request.cached <= geometry.chunk.start;
                   });
                   return past ? 2 : 1;
                 }});
  // How many chunks of that size the longest context takes.
  out.push_back({"chunk.parts", {"all", "one", "two", "three or more"}, [](const Geometry& geometry) {
                   if (geometry.caches.empty()) return -1;
                   const std::int64_t tokens = geometry.chunk.tokens, longest = longest_context(geometry);
                   return tokens == 0 ? 0 : tokens >= longest ? 1 : 2 * tokens >= longest ? 2 : 3;
                 }});
  if (uses(op, "caches") && uses(op, "dcp")) out.push_back(owners_dimension(op));
  return out;
}

GeometryDimensions padding_dimensions(const Op& op) {
  GeometryDimensions out;
  if (!uses(op, "padding")) return out;
  out.push_back(ranged("padding.tokens", padding_counts(), [](const Geometry& geometry) { return geometry.padding.tokens; }));
  const auto field = [&](const std::string& name, const std::vector<std::string>& buckets, std::string Padding::*member) {
    out.push_back({name, buckets, [buckets, member](const Geometry& geometry) {
                     return geometry.padding.tokens == 0 ? -1 : index_of(buckets, geometry.padding.*member);
                   }});
  };
  if (has_input(op, "slots:")) field("padding.slots", {"-1", "-block", "int32_min", "int64_min"}, &Padding::slots);
  if (has_input(op, "positions")) field("padding.positions", {"in_range", "zero", "stale"}, &Padding::positions);
  if (has_padding_values(op)) {
    std::vector<std::string> names;
    for (const RecipeFamily& family : padding_families()) names.push_back(family.name);
    out.push_back({"padding.values", names, [](const Geometry& geometry) {
                     return geometry.padding.tokens == 0 ? -1 : family_of(padding_families(), geometry.padding.values);
                   }});
  }
  return out;
}

GeometryDimensions capacity_dimensions(const Op& op) {
  if (!uses(op, "max_batched_tokens")) return {};
  return {{"max_batched_tokens", {"not said", "T", "T+1", "over T+1"}, [](const Geometry& geometry) {
             const std::int64_t over = geometry.max_batched_tokens - geometry.tokens();
             if (geometry.max_batched_tokens == 0) return 0;
             return over == 0 ? 1 : over == 1 ? 2 : 3;
           }}};
}

GeometryDimensions columns_dimensions(const Op& op, const std::string& name) {
  if (!has_input(op, "block_table")) return {};
  return {of_group(name, "table_columns", {"not said", "needed", "more", "fewer"},
                   [](const Geometry& geometry, const CacheGroup& group) {
                     const std::int64_t needed = columns_needed(geometry, group);
                     if (group.table_columns == 0) return 0;
                     return group.table_columns == needed ? 1 : group.table_columns > needed ? 2 : 3;
                   })};
}

GeometryDimensions slots_dimensions(const Op& op, const std::string& name) {
  const std::vector<std::string> mappings = slot_mappings_of(op, name);
  if (index_of(mappings, "explicit") < 0) return {};
  return {of_group(name, "slots", {"none owned", "one rank's", "all owned", "mixed"},
                   [](const Geometry& geometry, const CacheGroup& group) {
                     if (group.slot_mapping != "explicit") return -1;
                     const auto live = static_cast<std::ptrdiff_t>(geometry.live_tokens());
                     std::int64_t owners = 0;
                     bool all = live > 0;
                     for (const auto& rank : group.slots) {
                       const auto owned = std::count_if(rank.begin(), rank.end(), [](std::int64_t slot) { return slot >= 0; });
                       if (owned > 0) ++owners;
                       all = all && owned == live;
                     }
                     return owners == 0 ? 0 : all ? 2 : owners == 1 ? 1 : 3;
                   })};
}

GeometryDimensions geometry_dimensions(const Op& op) {
  GeometryDimensions out;
  const auto add = [&](GeometryDimensions dimensions) {
    for (GeometryDimension& dimension : dimensions) out.push_back(std::move(dimension));
  };
  const std::vector<std::string> groups = groups_of(op);
  add(rank_dimensions(op));
  for (const std::string& group : groups) add(group_dimensions(op, group));
  add(interleave_dimensions(op));
  add(batch_dimensions(op));
  add(chunk_dimensions(op));
  add(padding_dimensions(op));
  add(capacity_dimensions(op));
  for (const std::string& group : groups) {
    add(columns_dimensions(op, group));
    add(slots_dimensions(op, group));
  }
  return out;
}

}  // namespace dcpcheck
