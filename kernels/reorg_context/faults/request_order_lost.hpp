#pragma once

#include "kernels/reorg_context/reorg_context.cuh"

namespace kernels::reorg_context::faults {

struct request_order_lost : Fixed {
  static constexpr const char* name = "request_order_lost";
  static constexpr const char* doc =
      "Reads every request where the first one lies: the context of a batch is the first request's again and again.";
  static constexpr const char* source = "vLLM 28526";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t placed_as(std::int64_t request) {
    (void)request;
    return 0;
  }
};

}  // namespace kernels::reorg_context::faults
