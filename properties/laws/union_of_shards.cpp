#include "properties/facts.hpp"
#include "properties/laws/relaunch.hpp"

namespace dcpcheck::laws {
namespace {

LawFindings check_union_of_shards(Trial& trial) {
  const Plan& plan = trial.plan();
  const Geometry& geometry = plan.value.geometry;
  if (geometry.world_size < 2) return silent("the DCP world size is 1");
  std::vector<std::string> caches;
  for (const TensorPlan& tensor : plan.tensors) {
    if (tensor.role != Role::cache || tensor.slot_mapping.empty()) continue;
    if (is_sharded(geometry, geometry.caches.at(tensor.cache.group))) caches.push_back(tensor.name);
  }
  if (caches.empty()) return silent("no cache is split over the ranks");
  const Observation& sharded = trial.observed();
  if (!sharded.refused.empty()) return silent("the launch was refused: " + sharded.refused);
  Case value = plan.value;
  value.geometry.world_size = 1;
  value.geometry.interleave = 1;
  const Observation whole = trial.observe(derive(trial.setting(), value, rows_from(0, plan.live), trial.bench().memory));
  if (!whole.refused.empty()) return silent("the launch under W = 1 was refused: " + whole.refused);
  Differences differences("union_of_shards", plan);
  for (const std::string& cache : caches) {
    const RowsLeft& all = whole.ranks.front().at(cache);
    for (std::size_t rank = 0; rank < sharded.ranks.size(); ++rank) {
      differences.compare_rows(cache, rank, sharded.ranks[rank].at(cache), all, "in the cache of one rank alone");
    }
  }
  LawFindings findings;
  findings.compared = differences.compared();
  findings.violations = differences.take();
  return findings;
}

}  // namespace

Law union_of_shards() {
  return {"union_of_shards", "The ranks' cache rows together are those that one rank has under W = 1.", false,
          check_union_of_shards};
}

}  // namespace dcpcheck::laws
