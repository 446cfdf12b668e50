#pragma once

#include "kernels/gather_cache/gather_cache.cuh"

namespace kernels::gather_cache::faults {

struct start_block_aligned : Fixed {
  static constexpr const char* name = "start_block_aligned";
  static constexpr const char* doc =
      "Rounds a chunk's first row down to its block: wrong wherever a local start falls inside one, as with 4 ranks and blocks "
      "of 64 global token 64 does.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t first_row(const Args& args, std::int64_t local_start) {
    return local_start / args.block_size * args.block_size;
  }
};

}  // namespace kernels::gather_cache::faults
