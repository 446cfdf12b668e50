// The codecs against a naive model and, where it is installed, against the CUDA toolkit: all codes, and fp32 inputs with
// every upper half and the lower halves around which rounding turns.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <limits>

#include "harness/core/bf16.hpp"
#include "harness/core/codec_test_model.hpp"
#include "harness/core/dtype.hpp"
#include "harness/core/e4m3.hpp"
#include "harness/core/e8m0.hpp"
#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

// Lower halves: the ends, the bf16 tie and its neighbours, and bits that make e4m3 ties with the upper half's.
constexpr std::array<std::uint32_t, 12> lower_halves = {0x0000, 0x0001, 0x0002, 0x4000, 0x7FFE, 0x7FFF,
                                                        0x8000, 0x8001, 0xA5A5, 0xC000, 0xFFFE, 0xFFFF};

// Calls body(bits, value) for the structured inputs.
template <class Body>
void each_input(Body body) {
  for (std::uint32_t upper = 0; upper <= 0xFFFF; ++upper) {
    for (const std::uint32_t lower : lower_halves) {
      const std::uint32_t bits = upper << 16 | lower;
      body(bits, float_of_bits(bits));
    }
  }
}

std::uint8_t model_e4m3(const model::Table& table, float value, bool saturate, bool clamp_nan) {
  if (std::isnan(value)) return clamp_nan ? 0x7E : 0x7F;
  const int sign = std::signbit(value) ? 0x80 : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude > 464) return static_cast<std::uint8_t>(saturate ? sign | 0x7E : 0x7F);
  return static_cast<std::uint8_t>(sign | table.nearest(magnitude));
}

TEST(Codec, EveryBf16) {
  for (int code = 0; code <= 0xFFFF; ++code) {
    const float decoded = decode_bf16(static_cast<std::uint16_t>(code));
    const int magnitude = code & 0x7FFF;
    if (magnitude > 0x7F80) {
      ASSERT_TRUE(std::isnan(decoded)) << code;
      ASSERT_EQ(encode_bf16(decoded), 0x7FC0) << code;
      continue;
    }
    const double size = magnitude == 0x7F80 ? std::numeric_limits<double>::infinity() : model::value(magnitude, 7, 127);
    ASSERT_EQ(static_cast<double>(decoded), code >= 0x8000 ? -size : size) << code;
    ASSERT_EQ(std::signbit(decoded), code >= 0x8000) << code;
    ASSERT_EQ(encode_bf16(decoded), code);
  }
}

TEST(Codec, EveryE4m3) {
  for (int code = 0; code <= 0xFF; ++code) {
    const float decoded = decode_e4m3(static_cast<std::uint8_t>(code));
    const int magnitude = code & 0x7F;
    if (magnitude == 0x7F) {
      ASSERT_EQ(float_bits(decoded), 0x7FC00000u);
      ASSERT_EQ(encode_e4m3(decoded), 0x7F);
      continue;
    }
    const double size = model::value(magnitude, 3, 7);
    ASSERT_EQ(static_cast<double>(decoded), code >= 0x80 ? -size : size) << code;
    ASSERT_EQ(std::signbit(decoded), code >= 0x80) << code;
    ASSERT_EQ(encode_e4m3(decoded), code);
    ASSERT_EQ(encode_e4m3(decoded, false, true), code);
  }
}

TEST(Codec, Bf16RoundsToNearestEven) {
  const model::Table table = model::bf16_table();
  each_input([&](std::uint32_t bits, float value) {
    const int expected = std::isnan(value) ? 0x7FC0
                         : std::isinf(value)
                             ? (std::signbit(value) ? 0xFF80 : 0x7F80)
                             : (std::signbit(value) ? 0x8000 : 0) | table.nearest(std::fabs(static_cast<double>(value)));
    ASSERT_EQ(encode_bf16(value), expected) << std::hex << bits;
  });
}

TEST(Codec, E4m3RoundsToNearestEven) {
  const model::Table table = model::e4m3_table();
  each_input([&](std::uint32_t bits, float value) {
    for (const bool saturate : {false, true}) {
      for (const bool clamp_nan : {false, true}) {
        ASSERT_EQ(encode_e4m3(value, saturate, clamp_nan), model_e4m3(table, value, saturate, clamp_nan)) << std::hex << bits;
      }
    }
  });
}

// Between every two neighbours: the tie, and an fp32 to either side of it.
TEST(Codec, E4m3Ties) {
  for (int code = 0; code < 0x7E; ++code) {
    const double low = model::value(code, 3, 7);
    const double high = model::value(code + 1, 3, 7);
    const auto tie = static_cast<float>((low + high) / 2);
    ASSERT_EQ(encode_e4m3(tie), code % 2 == 0 ? code : code + 1);
    ASSERT_EQ(encode_e4m3(std::nextafterf(tie, 0.0f)), code);
    ASSERT_EQ(encode_e4m3(std::nextafterf(tie, 1e9f)), code + 1);
    ASSERT_EQ(encode_e4m3(-tie), 0x80 | (code % 2 == 0 ? code : code + 1));
  }
}

TEST(Codec, E4m3OutOfRange) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(encode_e4m3(448.0f), 0x7E);
  EXPECT_EQ(encode_e4m3(464.0f, false), 0x7E);
  EXPECT_EQ(encode_e4m3(std::nextafterf(464.0f, inf), false), 0x7F);
  EXPECT_EQ(encode_e4m3(std::nextafterf(464.0f, inf), true), 0x7E);
  EXPECT_EQ(encode_e4m3(-465.0f, true), 0xFE);
  EXPECT_EQ(encode_e4m3(inf, true), 0x7E);
  EXPECT_EQ(encode_e4m3(-inf, true), 0xFE);
  EXPECT_EQ(encode_e4m3(-inf, false), 0x7F);
  EXPECT_EQ(encode_e4m3(float_of_bits(0xFFC00001u)), 0x7F);
  EXPECT_EQ(encode_e4m3(float_of_bits(0xFFC00001u), true, true), 0x7E);
  EXPECT_EQ(encode_e4m3(inf, false, true), 0x7F);  // the two policies are apart
  EXPECT_EQ(encode_e4m3(-0.0f), 0x80);
  EXPECT_EQ(encode_e4m3(std::ldexp(1.0f, -10)), 0x00);
  EXPECT_EQ(encode_e4m3(std::nextafterf(std::ldexp(1.0f, -10), 1.0f)), 0x01);
}

#if DCPCHECK_TOOLKIT_CODECS
TEST(Codec, AgreesWithTheToolkit) {
  each_input([](std::uint32_t bits, float value) {
    const auto toolkit_bf16 = static_cast<__nv_bfloat16_raw>(__float2bfloat16_rn(value)).x;
    if (std::isnan(value)) {
      ASSERT_GT(toolkit_bf16 & 0x7FFF, 0x7F80);
    } else {
      ASSERT_EQ(encode_bf16(value), toolkit_bf16) << std::hex << bits;
    }
    ASSERT_EQ(encode_e4m3(value, true), __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3)) << std::hex << bits;
    const int open = __nv_cvt_float_to_fp8(value, __NV_NOSAT, __NV_E4M3);
    ASSERT_EQ(encode_e4m3(value, false), (open & 0x7F) == 0x7F ? 0x7F : open) << std::hex << bits;
  });
  for (int code = 0; code <= 0xFF; ++code) {
    const __half half = __half(__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(code), __NV_E4M3));
    const float toolkit = __half2float(half);
    const float ours = decode_e4m3(static_cast<std::uint8_t>(code));
    if (std::isnan(toolkit)) {
      EXPECT_TRUE(std::isnan(ours)) << code;
    } else {
      EXPECT_EQ(float_bits(ours), float_bits(toolkit)) << code;
    }
  }
}
#else
TEST(Codec, AgreesWithTheToolkit) { GTEST_SKIP() << "cuda_bf16.h and cuda_fp8.h are not in an include folder"; }
#endif

TEST(Codec, PowersOfTwo) {
  for (int k = -200; k <= 200; ++k) {
    EXPECT_EQ(power_of_two(k), static_cast<float>(std::ldexp(1.0, k < -149 ? -200 : k))) << k;
  }
}

TEST(Codec, E8m0AtItsCriticalValues) {
  EXPECT_EQ(e8m0_exponent(448.0f), 0);
  EXPECT_EQ(e8m0_exponent(std::nextafterf(448.0f, 1e9f)), 1);
  EXPECT_EQ(e8m0_exponent(std::nextafterf(448.0f, 0.0f)), 0);
  EXPECT_EQ(e8m0_exponent(1.75f), -8);
  EXPECT_EQ(ceil_log2(1.0f), 0);
  EXPECT_EQ(ceil_log2(std::nextafterf(1.0f, 2.0f)), 1);
  EXPECT_EQ(ceil_log2(std::nextafterf(1.0f, 0.0f)), 0);
  EXPECT_EQ(ceil_log2(std::numeric_limits<float>::denorm_min()), -149);
  EXPECT_EQ(e8m0_exponent(std::numeric_limits<float>::denorm_min()), -157);
}

// The least k with amax <= 448 * 2^k (and value <= 2^k), by the definition: products with powers of two are exact in
// double.
TEST(Codec, E8m0IsTheLeastScaleThatFits) {
  each_input([](std::uint32_t bits, float value) {
    if (!(value > 0) || std::isinf(value)) return;
    const double amax = value;
    const int k = e8m0_exponent(value);
    ASSERT_LE(amax, std::ldexp(448.0, k)) << std::hex << bits;
    ASSERT_GT(amax, std::ldexp(448.0, k - 1)) << std::hex << bits;
    const int log = ceil_log2(value);
    ASSERT_LE(amax, std::ldexp(1.0, log)) << std::hex << bits;
    ASSERT_GT(amax, std::ldexp(1.0, log - 1)) << std::hex << bits;
  });
}

// The codecs can be evaluated by the compiler: no call hides in them.
static_assert(encode_bf16(1.0f) == 0x3F80);
static_assert(encode_e4m3(decode_e4m3(0x7E)) == 0x7E);
static_assert(power_of_two(e8m0_exponent(448.0f)) == 1.0f);

TEST(DType, Names) {
  for (const DType type : {DType::u8, DType::bf16, DType::e4m3, DType::fp32, DType::i32, DType::i64}) {
    EXPECT_EQ(dtype_named(name_of(type)), type);
  }
  try {
    dtype_named("fp16");
    FAIL() << "fp16 was taken";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "'fp16' is no dtype: one of u8, bf16, e4m3, fp32, i32, i64");
  }
}

TEST(Error, Errno) {
  errno = ENOENT;
  try {
    throw_errno("open x");
  } catch (const HarnessError& error) {
    EXPECT_STREQ(error.what(), "open x: No such file or directory");
  }
}

}  // namespace
}  // namespace dcpcheck
