#pragma once

#include "kernels/gather_cache/gather_cache.cuh"

namespace kernels::gather_cache::faults {

struct global_positions_in_local_table : Fixed {
  static constexpr const char* name = "global_positions_in_local_table";
  static constexpr const char* doc =
      "Looks a row up by its position in the request, in a table of the rank's own rows: other tokens' rows, or none.";
  static constexpr const char* source = "vLLM 54541";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t place(const Args& args, std::int64_t local) {
    return local / args.interleave * args.interleave * args.world_size + args.rank * args.interleave + local % args.interleave;
  }
};

}  // namespace kernels::gather_cache::faults
