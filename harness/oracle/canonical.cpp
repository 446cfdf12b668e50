#include "harness/oracle/canonical.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "harness/oracle/code_spans.hpp"
#include "harness/oracle/ranges.hpp"

namespace dcpcheck {

std::uint64_t canonical_code(const Admissible& expected, std::int64_t index, const Comparison& how, float scale) {
  if (expected.exact) {
    const std::int64_t size = size_of(how.dtype);
    const std::byte* const code = expected.codes.data() + index * size;
    if (is_float(how.dtype) && decode(code, how.dtype).nan) return nan_code(how.dtype);
    std::uint64_t bits = 0;
    std::memcpy(&bits, code, static_cast<std::size_t>(size));  // little-endian, as all we run on
    return bits;
  }
  const auto at = static_cast<std::size_t>(index);
  const double value = expected.value[at];
  if (how.dtype == DType::e4m3) {
    // Against an infinite scale it matters that the kernel divides an fp32, which may be infinite where the value is not.
    const double dividend = std::isinf(scale) ? narrow_fp32(value) : value;
    const std::uint8_t code = narrow_e4m3(narrow_fp32(dividend / scale), how.e4m3);
    return (code & 0x7F) == 0x7F ? nan_code(how.dtype) : code;
  }
  if (std::isnan(value)) return nan_code(how.dtype);
  if (how.dtype == DType::bf16) return narrow_bf16(value);
  if (expected.error[at] == 0) return std::bit_cast<std::uint32_t>(narrow_fp32(value));
  return std::uint64_t{narrow_bf16(value)} << 16;
}

}  // namespace dcpcheck
