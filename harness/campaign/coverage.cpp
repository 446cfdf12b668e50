#include "harness/campaign/coverage.hpp"

#include <algorithm>

namespace dcpcheck {
namespace {

constexpr std::uint64_t kFirst = 4096;  // cases of a lane: more than its covering array takes

}  // namespace

std::vector<Intervals> indices_done(const std::vector<CampaignState>& shards) {
  std::vector<Intervals> indices(shards.front().lanes.size());
  const std::vector<std::size_t> round = round_of(shards.front().lanes);
  for (const CampaignState& shard : shards) {
    for (const auto& [from, to] : shard.done.all()) {
      const std::uint64_t last = std::min<std::uint64_t>(to, shard.stored + kFirst * round.size());
      for (std::uint64_t number = std::max(from, shard.stored); number < last; ++number) {
        if (!is_of_shard(shard, round, number)) continue;
        const Turn turn = turn_of(round, number - shard.stored);
        if (turn.index < kFirst) indices[turn.lane].add(turn.index, turn.index + 1);
      }
    }
  }
  return indices;
}

std::vector<LaneCoverage> coverage_of(const std::vector<Intervals>& indices,
                                      const std::vector<std::unique_ptr<CaseSource>>& sources) {
  std::vector<LaneCoverage> all;
  for (std::size_t lane = 0; lane < indices.size(); ++lane)
    all.push_back({lane, sources[lane]->coverage(indices[lane]), sources[lane]->covering_cases()});
  return all;
}

}  // namespace dcpcheck
