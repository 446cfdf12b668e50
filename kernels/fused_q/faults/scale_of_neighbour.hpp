#pragma once

#include "kernels/fused_q/fused_q.cuh"

namespace kernels::fused_q::faults {

struct scale_of_neighbour : Fixed {
  static constexpr const char* name = "scale_of_neighbour";
  static constexpr const char* doc = "Folds the scale of the index head before into a weight.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t weighed_head(std::int64_t head, std::int64_t heads) { return (head + 1) % heads; }
};

}  // namespace kernels::fused_q::faults
