#pragma once

#include "kernels/reorg_context/reorg_context.cuh"

namespace kernels::reorg_context::faults {

struct ranks_reversed : Fixed {
  static constexpr const char* name = "ranks_reversed";
  static constexpr const char* doc =
      "Takes the pieces in the reverse order of the ranks, as from a group that was made in another order.";
  static constexpr const char* source = "TensorRT-LLM 10350";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t piece_of(std::int64_t rank, std::int64_t world_size) { return world_size - 1 - rank; }
};

}  // namespace kernels::reorg_context::faults
