#include "harness/core/chunk.hpp"
#include "harness/core/geometry_inputs.hpp"
#include "properties/laws/relaunch.hpp"

namespace dcpcheck::laws {
namespace {

// A token of the launch, by its request and position.
struct Place {
  std::size_t request = 0;
  std::int64_t position = 0;
};

std::vector<Place> places_of(const Geometry& geometry) {
  std::vector<Place> places;
  for (std::size_t request = 0; request < geometry.batch.size(); ++request) {
    for (std::int64_t i = 0; i < geometry.batch[request].uncached; ++i)
      places.push_back({request, geometry.batch[request].cached + i});
  }
  return places;
}

// The gather of all tokens, those of the launch too, by a case that has them all cached.
Case gather_of(const Op& gather, const Case& value) {
  Case out;
  out.op = gather.name;
  out.seed = value.seed;
  for (const Param& param : gather.params) {
    const auto given = value.params.find(param.name);
    out.params[param.name] = given == value.params.end() ? param.value : given->second;
  }
  for (const Option& option : gather.contract) out.contract[option.name] = option.values.front();
  out.geometry.tp = value.geometry.tp;
  out.geometry.world_size = value.geometry.world_size;
  out.geometry.interleave = value.geometry.interleave;
  CacheGroup& group = out.geometry.caches["mla"] = value.geometry.caches.at("mla");
  // Which slots rows lie in does not matter, but that each is read where it was put.
  if (group.sparse) group.spare_blocks = CacheGroup().spare_blocks;
  group.sparse = false;
  for (const Request& request : value.geometry.batch) out.geometry.batch.push_back({request.cached + request.uncached, 0});
  return out;
}

// What the kernel put into its caches is put into those that the gather reads, and compared with what the kernel gave out.
LawFindings check_scatter_then_gather(Trial& trial) {
  const Plan& plan = trial.plan();
  const TensorPlan* const cache = plan.find("mla_cache");
  const auto group = plan.value.geometry.caches.find("mla");
  if (cache == nullptr || cache->slot_mapping.empty() || plan.find("kv_c_out") == nullptr)
    return silent("it takes an MLA cache, and kv_c_out beside it");
  if (plan.value.choice("mla_layout") != "bf16") return silent("a quantised row is another value");
  if (group->second.slot_mapping != "dcp" && group->second.slot_mapping != "replicated")
    return silent("the slots are not those of positions");
  const Kernel* const kernel = fixed_kernel(*trial.bench().kernels, "gather_cache");
  if (kernel == nullptr || !trial.bench().backend->can_run(*kernel)) return silent("there is no kernel that gathers");
  const Observation& scattered = trial.observed();
  if (!scattered.refused.empty()) return silent("the launch was refused: " + scattered.refused);

  const Op& op = trial.bench().ops->at("gather_cache");
  Setting gather;
  gather.plan = make_plan(op, gather_of(op, plan.value), trial.bench().memory);
  gather.inputs = make_inputs(gather.plan);
  const GroupMap map(gather.plan, "mla");
  const std::vector<Place> places = places_of(plan.value.geometry);
  const TensorPlan& gathered_cache = gather.plan.tensor("mla_cache");
  for (std::size_t rank = 0; rank < scattered.ranks.size(); ++rank) {
    const RowsLeft& records = scattered.ranks[rank].at("mla_cache");
    Bytes& storage = gather.inputs.ranks[rank].at("mla_cache");
    for (std::size_t token = 0; token < places.size(); ++token) {
      const std::int64_t slot =
          map.slot(static_cast<std::int64_t>(places[token].request), places[token].position, static_cast<std::int64_t>(rank));
      if (slot >= 0 && !records[token].empty()) place_record(gathered_cache.cache, slot, records[token], storage.data());
    }
  }
  const Observation gathered = observe(gather, *kernel, *trial.bench().backend, trial.bench().threads);
  if (!gathered.refused.empty()) return silent("the gather was refused: " + gathered.refused);

  const ChunkPlan chunk = plan_chunk(gather.plan.value.geometry, group->second);
  std::vector<std::int64_t> first_row(chunk.requests.size(), 0);
  for (std::size_t request = 1; request < chunk.requests.size(); ++request)
    first_row[request] = first_row[request - 1] + chunk.requests[request - 1].padded;
  Differences differences("scatter_then_gather", plan);
  // A gathered row is that of kv_c, then that of k_pe.
  const std::int64_t kv_bytes = plan.tensor("kv_c_out").columns() * size_of(DType::bf16);
  for (std::size_t rank = 0; rank < gathered.ranks.size(); ++rank) {
    const RowsLeft& rows = gathered.ranks[rank].at("workspace");
    for (std::size_t token = 0; token < places.size(); ++token) {
      const Place& place = places[token];
      const std::int64_t owner = dcp::owner(chunk.sharding, place.position);
      if (owner != static_cast<std::int64_t>(rank) % chunk.sharding.world_size) continue;
      const auto row = static_cast<std::size_t>(first_row[place.request] + dcp::local_index(chunk.sharding, place.position));
      const auto compare = [&](const char* out, auto begin, auto end) {
        if (plan.find(out) == nullptr) return;
        differences.compare(out, static_cast<std::int64_t>(rank), static_cast<std::int64_t>(token),
                            scattered.ranks[rank].at(out)[token], Bytes(begin, end), "gathered from the cache");
      };
      compare("kv_c_out", rows[row].begin(), rows[row].begin() + kv_bytes);
      compare("k_pe_out", rows[row].begin() + kv_bytes, rows[row].end());
    }
  }
  LawFindings findings;
  findings.compared = differences.compared();
  findings.violations = differences.take();
  return findings;
}

}  // namespace

Law scatter_then_gather() {
  return {"scatter_then_gather", "A bf16 cache row, gathered again, is the K row that the kernel gave out.", false,
          check_scatter_then_gather};
}

}  // namespace dcpcheck::laws
