#pragma once

#include "kernels/gather_cache/gather_cache.cuh"

namespace kernels::gather_cache::faults {

struct local_length_wrong_in_second_chunk : Fixed {
  static constexpr const char* name = "local_length_wrong_in_second_chunk";
  static constexpr const char* doc =
      "Counts a chunk from the request's first row, as if there were one chunk: the second and later ones hold the first rows "
      "again.";
  static constexpr const char* source = "vLLM 28526";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t first_row(const Args& args, std::int64_t local_start) {
    (void)args;
    (void)local_start;
    return 0;
  }
};

}  // namespace kernels::gather_cache::faults
