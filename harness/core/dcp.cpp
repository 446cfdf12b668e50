#include "harness/core/dcp.hpp"

#include <algorithm>

namespace dcpcheck::dcp {

std::int64_t owner(const Sharding& sharding, std::int64_t position) {
  const std::int64_t in_block = position % (sharding.block_size * sharding.world_size);
  return in_block / sharding.interleave % sharding.world_size;
}

std::int64_t local_index(const Sharding& sharding, std::int64_t position) {
  const std::int64_t virtual_block = sharding.block_size * sharding.world_size;
  const std::int64_t in_block = position % virtual_block;
  return position / virtual_block * sharding.block_size +
         in_block / (sharding.interleave * sharding.world_size) * sharding.interleave + in_block % sharding.interleave;
}

std::int64_t local_length(const Sharding& sharding, std::int64_t tokens, std::int64_t rank) {
  // A round deals I positions to each rank. I divides B, so rounds run on over the ends of virtual blocks.
  const std::int64_t round = sharding.world_size * sharding.interleave;
  return tokens / round * sharding.interleave +
         std::clamp<std::int64_t>(tokens % round - rank * sharding.interleave, 0, sharding.interleave);
}

}  // namespace dcpcheck::dcp
