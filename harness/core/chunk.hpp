// One chunk of the cached context under DCP: which rows of each request a rank gathers, and where they go.
//
// A workspace is smaller than a long context, so the context comes in chunks. A chunk takes tokens [start, start + n) of
// each request, on boundaries of W * I tokens, so that on every rank it is a run of the rank's own rows. All ranks gather
// the same number of rows, the padded length; a rank that owns fewer leaves the rest of them as they were.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/core/case.hpp"
#include "harness/core/dcp.hpp"

namespace dcpcheck {

struct ChunkRequest {
  std::int64_t start = 0, tokens = 0;        // of the request's context
  std::int64_t local_start = 0, padded = 0;  // rows, the same on every rank
};

struct ChunkPlan {
  dcp::Sharding sharding;
  std::vector<ChunkRequest> requests;
  std::int64_t local_rows = 0;    // sum of the padded lengths: rows of a rank's workspace
  std::int64_t context_rows = 0;  // sum of the tokens

  // How many of the request's padded rows the rank owns.
  std::int64_t valid_rows(std::size_t request, std::int64_t rank) const;
};

// The chunk that the geometry's `chunk` names, of the cache group `group`.
ChunkPlan plan_chunk(const Geometry& geometry, const CacheGroup& group);

}  // namespace dcpcheck
