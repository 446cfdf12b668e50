// What an op uses of a case, read off its tensors and expressions, and the dimensions of a geometry that follow from it.
// Shared by the buckets, the generators and shrinking; none of them knows an op by its name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/case.hpp"
#include "harness/core/op.hpp"
#include "properties/ranges.hpp"

namespace dcpcheck {

bool uses(const Op& op, std::string_view geometry_field);

// The cache groups that cases of the op may have; of an op that takes any, as many as show what several do.
std::vector<std::string> groups_of(const Op& op);
bool takes_any_groups(const Op& op);

// The names that an expression mentions: params, sizes, "option.<name>", "<group>.present", …
std::vector<std::string> names_in(const Expression& expression);
bool mentions(const Expression& expression, std::string_view name);

// Whether the launch's own tokens matter: some tensor has rows for them.
bool launches_tokens(const Op& op);
// Whether tokens cached beforehand matter: there are caches, or positions that they move.
bool has_context(const Op& op);
// Whether an input is filled by a recipe that is `recipe`, or starts with it where it ends in ':'.
bool has_input(const Op& op, std::string_view recipe);
// Whether an input holds floats for each token: padding tokens have rows in it, too.
bool has_padding_values(const Op& op);
// Whether queries meet the keys of their own request: then a launch costs the products of their numbers.
bool meets_keys(const Op& op);
// Whether the op is made of launches of others, one after the other.
bool runs_pipeline(const Op& op);
// Whether some tensor keeps the group's records.
bool has_records(const Op& op, std::string_view group);
// The slot mappings by which the group can differ. Where cached rows are read, only those that have places for them.
std::vector<std::string> slot_mappings_of(const Op& op, const std::string& group);

// The recipe that `input` has in the case.
const std::string& recipe_of(const Case& value, const TensorSpec& input);

bool is_sharded(const Geometry& geometry, const CacheGroup& group);
// Whether the group's slots are drawn or listed rather than those of positions: then no token can be cached.
bool has_free_slots(const Geometry& geometry, const CacheGroup& group);

// The cache group whose blocks the buckets of lengths are about: the op's first that is there.
struct Lead {
  std::string name;  // "": there is none
  Lengths lengths;
  bool sharded = false;
};
Lead lead_of(const Op& op, const Geometry& geometry);

const Ranges& world_sizes();
const Ranges& rank_groups();     // tp / W
const Ranges& request_counts();  // R
const Ranges& token_counts();    // live tokens of a launch
const Ranges& padding_counts();
// Spare blocks of a group. Where no tensor keeps its records they take no memory, and may be so many, of large blocks, that
// slots pass 2^31.
constexpr std::int64_t kManyBlocks = 4096, kLargeBlock = std::int64_t{1} << 20;
const Ranges& spare_counts(const Op& op, std::string_view group);

// A dimension of the geometry alone; -1 where it has no such thing.
struct GeometryDimension {
  std::string name;
  std::vector<std::string> buckets;
  std::function<int(const Geometry&)> bucket_of;
};
using GeometryDimensions = std::vector<GeometryDimension>;

GeometryDimensions rank_dimensions(const Op& op);                            // W, groups of ranks
GeometryDimensions group_dimensions(const Op& op, const std::string& name);  // a cache group's own fields
GeometryDimensions interleave_dimensions(const Op& op);
GeometryDimensions batch_dimensions(const Op& op);
GeometryDimensions chunk_dimensions(const Op& op);
GeometryDimensions padding_dimensions(const Op& op);
GeometryDimensions capacity_dimensions(const Op& op);
GeometryDimensions columns_dimensions(const Op& op, const std::string& name);
GeometryDimensions slots_dimensions(const Op& op, const std::string& name);
GeometryDimensions geometry_dimensions(const Op& op);  // all of these

// The columns of the group's table that the longest request needs.
std::int64_t columns_needed(const Geometry& geometry, const CacheGroup& group);

}  // namespace dcpcheck
