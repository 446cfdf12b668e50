// Who owns which token under decode context parallelism, in closed form.
//
// A logical block of B tokens a rank makes a virtual block of v = B * W positions, dealt to the W ranks in runs of I.
// Source: the public slot-mapping formula of vLLM (pull request 51031), checked there and in dcp_test.cpp to be a
// bijection for every W <= 8 and I that divides B.
#pragma once

#include <cstdint>

namespace dcpcheck::dcp {

struct Sharding {
  std::int64_t block_size = 64;  // B, logical, per rank
  std::int64_t world_size = 1;   // W
  std::int64_t interleave = 1;   // I, divides B
};

// The rank that owns position p >= 0.
std::int64_t owner(const Sharding& sharding, std::int64_t position);

// Where on its owner the row of position p lies, counted in the request's own rows.
std::int64_t local_index(const Sharding& sharding, std::int64_t position);

// How many of a request's first n tokens rank r owns.
std::int64_t local_length(const Sharding& sharding, std::int64_t tokens, std::int64_t rank);

}  // namespace dcpcheck::dcp
