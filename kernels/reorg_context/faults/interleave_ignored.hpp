#pragma once

#include "kernels/reorg_context/reorg_context.cuh"

namespace kernels::reorg_context::faults {

struct interleave_ignored : Fixed {
  static constexpr const char* name = "interleave_ignored";
  static constexpr const char* doc =
      "Deals tokens to the ranks one by one whatever the interleave is: the rows are in the wrong order, and at a chunk's end "
      "some that nobody wrote.";
  static constexpr const char* source = "vLLM 54541";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t interleave(const Args& args) {
    (void)args;
    return 1;
  }
};

}  // namespace kernels::reorg_context::faults
