// Batches as kernels have them: the rows of all requests one after the other, and where each request's begin.
#pragma once

#include <cstdint>

#include "harness/core/host_device.hpp"

namespace kernels {

// The request that row `row` is of: offsets[r] <= row < offsets[r + 1]. `row` must be one of the batch's. Requests
// without rows are passed over.
DCPCHECK_HD inline std::int64_t request_of(const std::int32_t* offsets, std::int64_t requests, std::int64_t row) {
  std::int64_t low = 0, high = requests;  // offsets[low] <= row < offsets[high]
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (offsets[middle] <= row ? low : high) = middle;
  }
  return low;
}

}  // namespace kernels
