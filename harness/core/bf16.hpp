// bfloat16: the upper half of an fp32. Integer code only, so that every machine gives the same bits.
#pragma once

#include <cstdint>

#include "harness/core/host_device.hpp"

namespace dcpcheck {

// The NaN that is stored for any NaN: payloads differ between machines.
inline constexpr std::uint16_t bf16_nan = 0x7FC0;

// The bits of an fp32, and back. (std::bit_cast is not marked for the device; the builtin beneath it needs no mark.)
DCPCHECK_HD constexpr std::uint32_t float_bits(float value) { return __builtin_bit_cast(std::uint32_t, value); }
DCPCHECK_HD constexpr float float_of_bits(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

// The bf16 nearest to `value`, ties to even, past the largest finite one to infinity; any NaN gives bf16_nan.
DCPCHECK_HD constexpr std::uint16_t encode_bf16(float value) {
  const std::uint32_t bits = float_bits(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return bf16_nan;
  // Half of the last place kept, less one where that place is even: a tie then only carries into odd ones. A carry out
  // of the mantissa is the next exponent, and out of the largest exponent infinity, as it should be.
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// The value of a bf16, exactly; a NaN keeps its sign and payload.
DCPCHECK_HD constexpr float decode_bf16(std::uint16_t code) { return float_of_bits(static_cast<std::uint32_t>(code) << 16); }

}  // namespace dcpcheck
