#pragma once

#include "kernels/merge_chunks/merge_chunks.cuh"

namespace kernels::merge_chunks::faults {

struct suffix_ignored : Fixed {
  static constexpr const char* name = "suffix_ignored";
  static constexpr const char* doc = "Leaves out the suffix, so that a chunk of the context is not attended to.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD bool takes_part(std::int64_t part) { return part == 0; }
};

}  // namespace kernels::merge_chunks::faults
