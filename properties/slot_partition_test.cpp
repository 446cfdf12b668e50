// The law of slot maps, over generated cases: on the ranks of a DCP group the owned slots partition the tokens; no two
// tokens of a rank share a slot; each rank owns as many as the closed form says; and the reference, which deals the
// positions out one by one, agrees with the closed form.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "harness/core/dcp.hpp"
#include "harness/core/inputs.hpp"
#include "properties/arbitrary_case.hpp"
#include "properties/check_law.hpp"
#include "properties/test_ops.hpp"

namespace dcpcheck {
namespace {

// Tables as wide as they must be: past the end of a row nobody owns a token.
GenerateOptions wide_tables() {
  GenerateOptions options = in_a_hurry();
  for (const char* group : {"full", "window", "tail"}) {
    options.only[std::string(group) + ".table_columns"] = {"not said", "needed", "more"};
  }
  return options;
}

void check_group(const Plan& plan, const std::string& name, const CacheGroup& group) {
  const Geometry& geometry = plan.value.geometry;
  const bool sharded = group.slot_mapping == "dcp";
  const dcp::Sharding sharding{group.block_size, sharded ? geometry.world_size : 1, sharded ? geometry.interleave : 1};
  std::vector<int> owners(static_cast<std::size_t>(plan.live), 0);
  for (std::int64_t rank = 0; rank < sharding.world_size; ++rank) {
    const std::vector<std::int64_t> slots = slots_of(plan, name, rank);
    std::set<std::int64_t> seen;
    std::size_t token = 0;
    for (const Request& request : geometry.batch) {
      std::int64_t owned = 0;
      for (std::int64_t i = 0; i < request.uncached; ++i, ++token) {
        if (slots[token] < 0) continue;
        ++owned;
        ++owners[token];
        RC_ASSERT(seen.insert(slots[token]).second);
      }
      RC_ASSERT(owned == dcp::local_length(sharding, request.cached + request.uncached, rank) -
                             dcp::local_length(sharding, request.cached, rank));
    }
  }
  for (const int count : owners) RC_ASSERT(count == 1);
}

TEST(SlotPartition, HoldsForGeneratedCases) {
  const auto builtins = builtin_ops();
  const BuiltinOp& builtin = builtins.at("compute_slot_mapping");
  const auto generator = std::make_shared<const Generator>(builtin.op, wide_tables());
  check_law(54907, 400, [&] {
    const Case value = *arbitrary_case(generator);
    const Plan plan = make_plan(builtin.op, value, std::int64_t{1} << 30);
    const Inputs inputs = make_inputs(plan);
    for (const auto& [name, group] : value.geometry.caches) check_group(plan, name, group);
    for (std::int64_t rank = 0; rank < value.geometry.tp; ++rank) {
      const Expected expected = builtin.reference(plan, inputs, rank, {});
      const Bytes& codes = expected.at("slot_mapping").codes;
      std::int64_t row = 0;
      for (const auto& [name, group] : value.geometry.caches) {
        const std::vector<std::int64_t> slots = slots_of(plan, name, rank);
        for (std::int64_t token = 0; token < plan.live && group.enabled; ++token) {
          std::int64_t slot = 0;
          std::memcpy(&slot, codes.data() + static_cast<std::size_t>(row * plan.capacity + token) * sizeof slot, sizeof slot);
          RC_ASSERT(slot == slots[static_cast<std::size_t>(token)]);
        }
        ++row;
      }
    }
  });
}

}  // namespace
}  // namespace dcpcheck
