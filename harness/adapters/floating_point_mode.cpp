#include "harness/adapters/floating_point_mode.hpp"

#include <array>
#include <cfenv>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace dcpcheck {
namespace {

void add(std::string& list, const std::string& what) { list += (list.empty() ? "" : ", ") + what; }

#if defined(__x86_64__)
constexpr std::uint32_t kSse = 0x1F80, kSseFlags = 0x3F;  // the flags say what happened, and are no mode
constexpr std::uint32_t kDenormalsAreZero = 0x40, kSseMasks = 0x1F80, kFlushToZero = 0x8000;
constexpr std::uint16_t kX87 = 0x037F;
constexpr std::uint32_t kX87Masks = 0x3F, kX87Precision = 0x300;

std::string rounding(std::uint32_t bits) {
  constexpr std::array words{"to nearest", "down", "up", "toward zero"};
  return words.at(bits & 3);
}

std::uint16_t x87_control() {
  std::uint16_t word = 0;
  __asm__ volatile("fnstcw %0" : "=m"(word));
  return word;
}

// Clears what is pending first: with its trap unmasked it would strike at the next x87 instruction.
void set_x87_control(std::uint16_t word) { __asm__ volatile("fnclex\n\tfldcw %0" : : "m"(word)); }
#endif

}  // namespace

#if defined(__x86_64__)
DefaultFloatingPoint::DefaultFloatingPoint() : sse_(_mm_getcsr()), x87_(x87_control()) {
  _mm_setcsr(kSse);
  set_x87_control(kX87);
}

DefaultFloatingPoint::~DefaultFloatingPoint() {
  _mm_setcsr(sse_ & ~kSseFlags);
  set_x87_control(x87_);
}

std::string DefaultFloatingPoint::changed() const {
  std::string list;
  const std::uint32_t sse = _mm_getcsr();
  const std::uint32_t x87 = x87_control();
  if ((sse >> 13 & 3) != 0) add(list, "rounding is " + rounding(sse >> 13));
  if ((sse & kFlushToZero) != 0) add(list, "subnormal results are flushed to zero");
  if ((sse & kDenormalsAreZero) != 0) add(list, "subnormal operands count as zero");
  if ((sse & kSseMasks) != kSseMasks) add(list, "exceptions trap");
  if ((x87 >> 10 & 3) != 0) add(list, "x87 rounding is " + rounding(x87 >> 10));
  if ((x87 & kX87Precision) != kX87Precision) add(list, "x87 precision is reduced");
  if ((x87 & kX87Masks) != kX87Masks) add(list, "x87 exceptions trap");
  return list;
}
#else
DefaultFloatingPoint::DefaultFloatingPoint() : sse_(static_cast<std::uint32_t>(std::fegetround())) {
  static_cast<void>(std::fesetenv(FE_DFL_ENV));
}

DefaultFloatingPoint::~DefaultFloatingPoint() {
  static_cast<void>(std::fesetenv(FE_DFL_ENV));
  static_cast<void>(std::fesetround(static_cast<int>(sse_)));
}

std::string DefaultFloatingPoint::changed() const {
  std::string list;
  if (std::fegetround() != FE_TONEAREST) add(list, "rounding is not to nearest");
  return list;
}
#endif

}  // namespace dcpcheck
