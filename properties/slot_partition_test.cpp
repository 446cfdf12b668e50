// The law of slot maps, over generated geometries: on the ranks of a DCP group the owned slots partition the tokens; no
// two tokens of a rank share a slot; each rank owns as many as the closed form says; and the reference, which deals the
// positions out one by one, agrees with the closed form.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "harness/core/dcp.hpp"
#include "harness/core/inputs.hpp"
#include "properties/check_law.hpp"
#include "reference/builtin_ops.hpp"

namespace dcpcheck {
namespace {

// A case of small integers; its tables come from the seed.
rc::Gen<Case> slot_map_case(const Op& op) {
  return rc::gen::exec([&op] {
    Case value;
    value.op = op.name;
    value.seed = *rc::gen::inRange<std::uint64_t>(0, 1U << 30);
    for (const Option& option : op.contract) value.contract[option.name] = option.values.front();
    Geometry& geometry = value.geometry;
    geometry.world_size = *rc::gen::element<std::int64_t>(1, 2, 3, 4, 8);
    geometry.tp = geometry.world_size * *rc::gen::element<std::int64_t>(1, 2);
    geometry.interleave = *rc::gen::element<std::int64_t>(1, 2, 4, 16);
    CacheGroup group;
    group.kernel_block_size = *rc::gen::element<std::int64_t>(1, 4, 16);
    group.block_size = std::max(group.kernel_block_size, geometry.interleave) * *rc::gen::element<std::int64_t>(1, 2, 3);
    const std::int64_t virtual_block = group.block_size * geometry.world_size;
    const auto length =
        rc::gen::oneOf(rc::gen::inRange<std::int64_t>(0, 40),
                       rc::gen::element<std::int64_t>(0, 1, virtual_block - 1, virtual_block, virtual_block + 1));
    const auto requests = *rc::gen::inRange<std::size_t>(0, 5);
    for (std::size_t i = 0; i < requests; ++i) geometry.batch.push_back({*length, *length});
    geometry.padding.tokens = *rc::gen::element<std::int64_t>(0, 0, 3);
    geometry.caches["mla"] = group;
    return value;
  });
}

TEST(SlotPartition, HoldsForGeneratedGeometries) {
  const auto builtins = builtin_ops();
  const BuiltinOp& builtin = builtins.at("compute_slot_mapping");
  check_law(54907, 400, [&] {
    const Case value = *slot_map_case(builtin.op);
    const Plan plan = make_plan(builtin.op, value, std::int64_t{1} << 30);
    const Inputs inputs = make_inputs(plan);
    const Geometry& geometry = value.geometry;
    const CacheGroup& group = geometry.caches.at("mla");
    const dcp::Sharding sharding{group.block_size, geometry.world_size, geometry.interleave};
    std::vector<int> owners(static_cast<std::size_t>(plan.live), 0);
    for (std::int64_t rank = 0; rank < geometry.world_size; ++rank) {
      const std::vector<std::int64_t> slots = slots_of(plan, "mla", rank);
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
      const Expected expected = builtin.reference(plan, inputs, rank, {});
      const Admissible& row = expected.at("slot_mapping");
      for (std::size_t i = 0; i < static_cast<std::size_t>(plan.live); ++i) {
        std::int64_t slot = 0;
        std::memcpy(&slot, row.codes.data() + i * sizeof slot, sizeof slot);
        RC_ASSERT(slot == slots[i]);
      }
    }
    for (const int count : owners) RC_ASSERT(count == 1);
  });
}

}  // namespace
}  // namespace dcpcheck
