#include <cstring>
#include <set>

#include "harness/core/dcp.hpp"
#include "properties/facts.hpp"
#include "properties/laws/relaunch.hpp"

namespace dcpcheck::laws {
namespace {

Element told(std::int64_t row, std::int64_t token, std::string got, std::string should) {
  return {{row, token}, "", std::move(got), std::move(should)};
}

std::vector<std::int64_t> live_slots(const Bytes& row, std::int64_t live) {
  std::vector<std::int64_t> slots(static_cast<std::size_t>(live));
  if (live > 0) std::memcpy(slots.data(), row.data(), slots.size() * sizeof(std::int64_t));
  return slots;
}

// One group's slots on all ranks: row `row` of `name`.
void check_group(const Plan& plan, const CacheGroup& group, const std::string& name, std::int64_t row,
                 const std::vector<std::vector<std::int64_t>>& slots, Differences& differences, std::int64_t& compared) {
  const Geometry& geometry = plan.value.geometry;
  const bool sharded = is_sharded(geometry, group);
  const dcp::Sharding sharding{group.block_size, sharded ? geometry.world_size : 1, sharded ? geometry.interleave : 1};
  std::vector<std::int64_t> owners(static_cast<std::size_t>(plan.live), 0);
  for (std::size_t rank = 0; rank < slots.size(); ++rank) {
    std::set<std::int64_t> seen;
    std::int64_t token = 0;
    for (const Request& request : geometry.batch) {
      std::int64_t owned = 0;
      for (std::int64_t i = 0; i < request.uncached; ++i, ++token) {
        const std::int64_t slot = slots[rank][static_cast<std::size_t>(token)];
        ++compared;
        if (slot < 0) continue;
        ++owned;
        ++owners[static_cast<std::size_t>(token)];
        if (!seen.insert(slot).second)
          differences.add(name, static_cast<std::int64_t>(rank), token,
                          told(row, token, std::to_string(slot), "a slot that no other token of the rank has"));
      }
      const std::int64_t rank_in_group = static_cast<std::int64_t>(rank) % sharding.world_size;
      const std::int64_t should = dcp::local_length(sharding, request.cached + request.uncached, rank_in_group) -
                                  dcp::local_length(sharding, request.cached, rank_in_group);
      if (owned != should && request.uncached > 0)
        differences.add(name, static_cast<std::int64_t>(rank), token - request.uncached,
                        told(row, token - request.uncached, std::to_string(owned) + " of the request's tokens owned",
                             std::to_string(should) + ", by the closed form"));
    }
  }
  const std::int64_t should = static_cast<std::int64_t>(slots.size()) / sharding.world_size;
  for (std::int64_t token = 0; token < plan.live; ++token) {
    const std::int64_t count = owners[static_cast<std::size_t>(token)];
    if (count != should)
      differences.add(name, 0, token,
                      told(row, token, std::to_string(count) + " owners", std::to_string(should) + ": one in each DCP group"));
  }
}

LawFindings check_slot_partition(Trial& trial) {
  const Plan& plan = trial.plan();
  const Observation& seen = trial.observed();
  if (!seen.refused.empty()) return silent("the launch was refused: " + seen.refused);
  Differences differences("slot_partition", plan);
  LawFindings findings;
  for (const TensorPlan& tensor : plan.tensors) {
    if (tensor.role != Role::out || tensor.spec->rows != Rows::slots) continue;
    std::int64_t row = 0;
    for (const auto& [name, group] : plan.value.geometry.caches) {
      const bool narrow = group.table_columns > 0 && group.table_columns < columns_needed(plan.value.geometry, group);
      if (group.enabled && !narrow) {
        std::vector<std::vector<std::int64_t>> slots;
        for (const auto& rank : seen.ranks)
          slots.push_back(live_slots(rank.at(tensor.name)[static_cast<std::size_t>(row)], plan.live));
        check_group(plan, group, tensor.name, row, slots, differences, findings.compared);
      }
      ++row;
    }
  }
  findings.violations = differences.take();
  return findings;
}

}  // namespace

Law slot_partition() {
  return {"slot_partition",
          "The ranks' slots partition the tokens, no two tokens of a rank share one, and each rank owns as many as the closed "
          "form says.",
          false, check_slot_partition};
}

}  // namespace dcpcheck::laws
