#pragma once

#include "kernels/dense_prefill/dense_prefill.cuh"

namespace kernels::dense_prefill::faults {

struct causal_off_by_one : Fixed {
  static constexpr const char* name = "causal_off_by_one";
  static constexpr const char* doc = "Lets a query see one token too many, the one after its own.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t causal_keys(std::int64_t i) { return i + 2; }
};

}  // namespace kernels::dense_prefill::faults
