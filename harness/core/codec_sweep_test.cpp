// All 2^32 fp32 inputs of every codec against the naive model, and against the CUDA toolkit where it is installed.
// Minutes of work, so only on request: DCPCHECK_SWEEP=1.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

#include "harness/core/bf16.hpp"
#include "harness/core/codec_test_model.hpp"
#include "harness/core/e4m3.hpp"
#include "harness/core/e8m0.hpp"
#include "harness/core/parallel.hpp"

namespace dcpcheck {
namespace {

constexpr std::uint32_t infinity = 0x7F800000u;

// What is wrong for one input of either sign, given the model's magnitude codes; empty where nothing is.
std::string check(float value, bool nan, bool infinite, int bf16, int e4m3) {
  const bool negative = std::signbit(value);
  const int bf16_expected = nan ? 0x7FC0 : (negative ? 0x8000 : 0) | (infinite ? 0x7F80 : bf16);
  const int e4m3_sign = negative ? 0x80 : 0;
  const bool over = nan || infinite || e4m3 == 0x7F;
  const int e4m3_open = over ? 0x7F : e4m3_sign | e4m3;
  const int e4m3_closed = nan ? 0x7F : e4m3_sign | (over ? 0x7E : e4m3);
  if (encode_bf16(value) != bf16_expected) return "encode_bf16 against the model";
  if (encode_e4m3(value, true) != e4m3_closed) return "encode_e4m3 (saturate) against the model";
  if (encode_e4m3(value, false) != e4m3_open) return "encode_e4m3 (nan) against the model";
  if (encode_e4m3(value, true, true) != (nan ? 0x7E : e4m3_closed)) return "encode_e4m3 (clamp) against the model";
#if DCPCHECK_TOOLKIT_CODECS
  const int toolkit_bf16 = static_cast<__nv_bfloat16_raw>(__float2bfloat16_rn(value)).x;
  if (nan ? (toolkit_bf16 & 0x7FFF) <= 0x7F80 : toolkit_bf16 != bf16_expected) return "__float2bfloat16_rn";
  if (__nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3) != e4m3_closed) return "__nv_cvt_float_to_fp8 (SATFINITE)";
  const int toolkit_open = __nv_cvt_float_to_fp8(value, __NV_NOSAT, __NV_E4M3);
  if (((toolkit_open & 0x7F) == 0x7F ? 0x7F : toolkit_open) != e4m3_open) return "__nv_cvt_float_to_fp8 (NOSAT)";
#endif
  return "";
}

TEST(CodecSweep, EveryFp32) {
  const char* wanted = std::getenv("DCPCHECK_SWEEP");
  if (wanted == nullptr || std::string_view(wanted) != "1") {
    GTEST_SKIP() << "a sweep of 2^32 inputs takes minutes: set DCPCHECK_SWEEP=1 to run it";
  }
  const model::Table bf16 = model::bf16_table();
  const model::Table e4m3 = model::e4m3_table();
  std::mutex guard;
  std::string first;  // the first failure that any thread met
  // The magnitudes; each thread walks its own upwards, so that the model's codes only ever rise.
  parallel_parts(std::int64_t{1} << 31, static_cast<int>(std::thread::hardware_concurrency()), 1 << 20,
                 [&](std::int64_t begin, std::int64_t end) {
                   const double least = float_of_bits(std::min(static_cast<std::uint32_t>(begin), infinity - 1));
                   int bf16_code = bf16.nearest(least);
                   int e4m3_code = e4m3.nearest(least);
                   int k = -200;    // the least k with value <= 448 * 2^k
                   int log = -200;  // the least with value <= 2^log
                   double fits = std::ldexp(448.0, k);
                   double power = std::ldexp(1.0, log);
                   for (std::int64_t index = begin; index < end; ++index) {
                     const auto bits = static_cast<std::uint32_t>(index);
                     const bool nan = bits > infinity;
                     std::string wrong;
                     if (bits < infinity) {
                       const double magnitude = float_of_bits(bits);
                       bf16_code = bf16.nearest_from(bf16_code, magnitude);
                       e4m3_code = e4m3.nearest_from(e4m3_code, magnitude);
                       for (; fits < magnitude; fits *= 2) ++k;
                       for (; power < magnitude; power *= 2) ++log;
                       if (bits > 0 && e8m0_exponent(float_of_bits(bits)) != k) wrong = "e8m0_exponent";
                       if (bits > 0 && ceil_log2(float_of_bits(bits)) != log) wrong = "ceil_log2";
                     }
                     for (const std::uint32_t sign : {0u, 0x80000000u}) {
                       if (wrong.empty()) {
                         wrong = check(float_of_bits(bits | sign), nan, bits == infinity, bf16_code, e4m3_code);
                       }
                       if (!wrong.empty()) {
                         std::ostringstream text;
                         text << wrong << " at 0x" << std::hex << (bits | sign);
                         const std::scoped_lock lock(guard);
                         if (first.empty()) first = text.str();
                         return;
                       }
                     }
                   }
                 });
  EXPECT_EQ(first, "");
}

}  // namespace
}  // namespace dcpcheck
