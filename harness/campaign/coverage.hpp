// Which pairs of buckets a campaign's cases have met.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "harness/campaign/source.hpp"
#include "harness/campaign/state.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {

struct LaneCoverage {
  std::size_t lane = 0;
  json::Value coverage;    // Coverage::to_json, of its first cases; null where the lane draws none
  std::int64_t first = 0;  // how many cases those are that meet all pairs
};

// By lane: the indices of the first cases, more than a covering array takes, that the shards have run between them.
std::vector<Intervals> indices_done(const std::vector<CampaignState>& shards);

// `sources`: the lanes'.
std::vector<LaneCoverage> coverage_of(const std::vector<Intervals>& indices,
                                      const std::vector<std::unique_ptr<CaseSource>>& sources);

}  // namespace dcpcheck
