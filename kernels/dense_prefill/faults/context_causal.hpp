#pragma once

#include "kernels/dense_prefill/dense_prefill.cuh"

namespace kernels::dense_prefill::faults {

struct context_causal : Fixed {
  static constexpr const char* name = "context_causal";
  static constexpr const char* doc =
      "Lets the i-th new token of a request see i + 1 keys of the context, as if that were causal too.";
  static constexpr const char* source = "derived";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t context_keys(std::int64_t keys, std::int64_t i) { return keys < i + 1 ? keys : i + 1; }
};

}  // namespace kernels::dense_prefill::faults
