// RMSNorm of a row, in fp32, one rounding a step: (x * rstd) * weight.
#pragma once

#include <cstdint>

#include "kernels/block.cuh"
#include "kernels/math.cuh"

namespace kernels {

// The sum of element(i)^2 over [0, n). All threads of the block must call it.
template <class F>
DCPCHECK_HD float sum_of_squares(const Block& block, std::int64_t n, F element) {
  return block.sum(n, [=](std::int64_t i) {
    const float value = element(i);
    return value * value;
  });
}

// An element normed. Rounded: the quotient is rounded to bf16 before it is multiplied by the weight.
template <bool Rounded>
DCPCHECK_HD float normed(float x, float rstd, float weight) {
  const float quotient = x * rstd;
  return (Rounded ? round_bf16(quotient) : quotient) * weight;
}

}  // namespace kernels
