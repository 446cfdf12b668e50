#pragma once

#include "kernels/gather_cache/gather_cache.cuh"

namespace kernels::gather_cache::faults {

struct blocks_taken_as_packed : Fixed {
  static constexpr const char* name = "blocks_taken_as_packed";
  static constexpr const char* doc = "Takes blocks to lie one after another, whatever their stride.";
  static constexpr const char* source = "vLLM 45111";
  static constexpr const char* reason = "inadmissible";
  static constexpr const char* caught_by = "admissible_values";

  static DCPCHECK_HD std::int64_t block_stride(const Args& args) { return args.block_size * args.record; }
};

}  // namespace kernels::gather_cache::faults
