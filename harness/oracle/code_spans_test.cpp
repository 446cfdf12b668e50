// That the spans of codes are what the judge admits: every code of the narrow types, asked of both.
#include "harness/oracle/code_spans.hpp"

#include <gtest/gtest.h>
#include <array>
#include <cstring>
#include <limits>

namespace dcpcheck {
namespace {

std::int64_t place_of(std::uint64_t code, int bits) {
  const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
  const auto size = static_cast<std::int64_t>(code & (sign - 1));
  return (code & sign) != 0 ? -size - 1 : size;
}

bool holds(const AdmissibleCodes& codes, std::uint64_t code, int bits, bool nan) {
  if (nan) return codes.nan;
  for (const CodeSpan& span : codes.spans)
    if (place_of(span.low, bits) <= place_of(code, bits) && place_of(code, bits) <= place_of(span.high, bits)) return true;
  return false;
}

template <class Code>
void same_as_the_judge(const Admissible& expected, const Comparison& how, float scale) {
  constexpr int bits = 8 * sizeof(Code);
  for (std::int64_t element = 0; element < expected.rows * expected.columns; ++element) {
    const AdmissibleCodes codes = admissible_spans(expected, element, how, scale);
    for (std::uint64_t bit_pattern = 0; bit_pattern < (std::uint64_t{1} << bits); ++bit_pattern) {
      const auto code = static_cast<Code>(bit_pattern);
      std::array<std::byte, sizeof(Code)> bytes{};
      std::memcpy(bytes.data(), &code, sizeof code);
      const bool nan = how.dtype == DType::e4m3 ? (code & 0x7F) == 0x7F : (code & 0x7FFF) > 0x7F80;
      EXPECT_EQ(holds(codes, code, bits, nan), judge_element(expected, element, bytes.data(), how, scale).admitted)
          << "value " << expected.value[static_cast<std::size_t>(element)] << ", error "
          << expected.error[static_cast<std::size_t>(element)] << ", scale " << scale << ", code " << bit_pattern;
    }
    for (std::size_t i = 1; i < codes.spans.size(); ++i)
      EXPECT_GT(place_of(codes.spans[i].low, bits), place_of(codes.spans[i - 1].high, bits) + 1);
  }
}

Admissible intervals() {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  Admissible expected;
  expected.value = {0, 0, 1, 1.00390625, -3, 1e-42, -1e-42, 1e30, -448, 464, 480, inf, -inf, nan, 1, 3.5e38, 0.001};
  expected.error = {0, 1e-3, 0, 1e-9, 0.5, 1e-42, 1e-43, 1e29, 1, 0.1, 0, 0, 0, 0, inf, 1e36, 2};
  expected.rows = static_cast<std::int64_t>(expected.value.size());
  expected.columns = 1;
  expected.alternatives = {{2, 2, 0}, {2, 40, 1}, {4, nan, 0}};
  return expected;
}

TEST(CodeSpans, OfBf16AreWhatTheJudgeAdmits) {
  Comparison how;
  how.dtype = DType::bf16;
  same_as_the_judge<std::uint16_t>(intervals(), how, 1);
}

TEST(CodeSpans, OfE4m3AreWhatTheJudgeAdmitsAtAnyScale) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (const bool saturate : {true, false}) {
    for (const bool clamp : {true, false}) {
      for (const bool full : {true, false}) {
        Comparison how;
        how.dtype = DType::e4m3;
        how.e4m3 = {saturate, clamp};
        how.full_division = full;
        for (const float scale :
             {1.0F, 0.25F, -0.5F, 1e-30F, 3e38F, 0.0F, -0.0F, inf, -inf, std::numeric_limits<float>::quiet_NaN()})
          same_as_the_judge<std::uint8_t>(intervals(), how, scale);
      }
    }
  }
}

TEST(CodeSpans, OfWhatIsExactAreOneCodeAndOfANaNAny) {
  Admissible expected;
  expected.exact = true;
  expected.rows = 2;
  expected.columns = 1;
  const std::array<std::uint16_t, 2> codes{0x8000, 0xFFC1};
  expected.codes.resize(sizeof codes);
  std::memcpy(expected.codes.data(), codes.data(), sizeof codes);
  Comparison how;
  how.dtype = DType::bf16;
  EXPECT_EQ(admissible_spans(expected, 0, how, 1).spans, (std::vector<CodeSpan>{{0x8000, 0x8000}}));
  EXPECT_FALSE(admissible_spans(expected, 0, how, 1).nan);
  EXPECT_TRUE(admissible_spans(expected, 1, how, 1).spans.empty());
  EXPECT_TRUE(admissible_spans(expected, 1, how, 1).nan);
}

}  // namespace
}  // namespace dcpcheck
