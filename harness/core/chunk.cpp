#include "harness/core/chunk.hpp"

#include <algorithm>

namespace dcpcheck {

std::int64_t ChunkPlan::valid_rows(std::size_t request, std::int64_t rank) const {
  const ChunkRequest& chunk = requests[request];
  const std::int64_t own = rank % sharding.world_size;
  return dcp::local_length(sharding, chunk.start + chunk.tokens, own) - dcp::local_length(sharding, chunk.start, own);
}

ChunkPlan plan_chunk(const Geometry& geometry, const CacheGroup& group) {
  ChunkPlan plan;
  const bool sharded = group.slot_mapping == "dcp";
  plan.sharding = {group.block_size, sharded ? geometry.world_size : 1, sharded ? geometry.interleave : 1};
  // Whole turns of the ranks: W runs of I.
  const std::int64_t turn = plan.sharding.world_size * plan.sharding.interleave;
  const auto turns = [&](std::int64_t tokens) { return (tokens + turn - 1) / turn * plan.sharding.interleave; };
  for (const Request& request : geometry.batch) {
    ChunkRequest chunk;
    chunk.start = std::min(geometry.chunk.start, request.cached);
    const std::int64_t end =
        geometry.chunk.tokens == 0 ? request.cached : std::min(geometry.chunk.start + geometry.chunk.tokens, request.cached);
    chunk.tokens = std::max<std::int64_t>(end - chunk.start, 0);
    chunk.local_start = turns(chunk.start);
    chunk.padded = chunk.tokens == 0 ? 0 : turns(chunk.start + chunk.tokens) - chunk.local_start;
    plan.local_rows += chunk.padded;
    plan.context_rows += chunk.tokens;
    plan.requests.push_back(chunk);
  }
  return plan;
}

}  // namespace dcpcheck
