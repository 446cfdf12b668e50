#pragma once

#include "kernels/dense_prefill/dense_prefill.cuh"

namespace kernels::dense_prefill::faults {

struct next_request_seen : Fixed {
  static constexpr const char* name = "next_request_seen";
  static constexpr const char* doc = "Lets the queries of a request see the context of the next one too.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t last_request(std::int64_t request) { return request + 1; }
};

}  // namespace kernels::dense_prefill::faults
