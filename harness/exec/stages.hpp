// The launches of a run of `generate`: which tokens of which requests each one has, and its case.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/core/case.hpp"
#include "harness/core/plan.hpp"

namespace dcpcheck {

// A request's part of a launch: tokens [cached, cached + tokens) of it.
struct Slice {
  std::int64_t request = 0, cached = 0, tokens = 0;
};

struct Stage {
  enum class Kind : std::uint8_t {
    prefix,   // an earlier request fills the prefix cache
    prefill,  // attention over the launch's own tokens and the cached context
    decode,   // one token a request, attention over the cache
  };
  Kind kind = Kind::prefill;
  std::string name;  // "prefix.0", "prefill.0", "decode.3"
  std::vector<Slice> slices;

  std::int64_t tokens() const;
};

// All stages, in their order: prefix and prefill fill launches of max_batched_tokens with requests one after the other.
std::vector<Stage> stages_of(const Case& value);

// The tokens whose keys the cache must hold of each request in the end: all but the last that it puts out.
std::vector<std::int64_t> final_lengths(const Case& value);

// Whether the slots of the group are worked out by a launch of compute_slot_mapping, for the group alone.
bool has_own_map(const CacheGroup& group);

// The cache groups of a run, worked out over the final lengths: they keep their blocks and tables from stage to stage.
struct Blocks {
  struct Group {
    std::int64_t blocks = 0, columns = 0;
    std::vector<std::vector<std::int32_t>> table;  // by request
  };
  std::map<std::string, Group> groups;
};
Blocks blocks_of(const Op& slot_mapping, const Case& value);

// The case of a launch of `op` within the run of `value`: what they have in common is taken over.
Case part_case(const Op& op, const Case& value);
// … for the tokens of `slices`, with those of the run's cache groups that `op` knows; where it takes any, those that have
// a map of their own.
Case part_case(const Op& op, const Case& value, const std::vector<Slice>& slices, const Blocks& blocks);

// The case of a stage's launch of fused_norm_rope: prefill, and the earlier request that fills the prefix cache, want its
// keys, and slot maps and top-k as large as a launch of the server's can be; decode reads its keys out of the cache.
Case norm_case(const Op& fused_norm_rope, const Case& value, const Stage& stage, const Blocks& blocks);

// Chunks of the context of `slices`: ranges of the tokens cached of each request, whole turns of the ranks.
std::vector<ChunkRange> context_chunks(const Case& value, const std::vector<Slice>& slices);

}  // namespace dcpcheck
