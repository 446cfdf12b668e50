// The scales that a kernel may store beside e4m3 codes.
#pragma once

#include <cstdint>

#include "reference/row.hpp"

namespace dcpcheck::reference {

enum class ScaleRule : std::uint8_t {
  fp32_div,  // max(amax / 448, FLT_MIN)
  fp32_mul,  // max(amax * fl(1 / 448), FLT_MIN)
  pow2,      // 2^ceil(log2(max(amax / 448, 1e-4)))
  ue8m0,     // 2^ceil(log2(max(amax, 1e-4) / 448))
};

// The admissible scales of each run of `tile` neighbours of `values`, one column a run. amax takes no notice of NaN.
void tile_scales(const Row& values, std::int64_t tile, ScaleRule rule, const Arithmetic& how, Row& out);

}  // namespace dcpcheck::reference
