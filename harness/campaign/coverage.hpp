// Which pairs of buckets a campaign's cases have met.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/campaign/state.hpp"
#include "harness/campaign/worker_link.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {

struct LaneCoverage {
  std::size_t lane = 0;
  json::Value coverage;    // Coverage::to_json, of its first cases; null where the lane draws none
  std::int64_t first = 0;  // how many cases those are that meet all pairs
};

// By lane: the indices of the first cases, more than a covering array takes, that the shards have run between them.
std::vector<Intervals> indices_done(const std::vector<CampaignState>& shards);

// Asks a worker of the campaign, which has the generators.
std::vector<LaneCoverage> coverage_of(const std::vector<Intervals>& indices, WorkerLink& worker);

}  // namespace dcpcheck
