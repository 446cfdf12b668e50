// How the thread rounds, and what it does with subnormal numbers: foreign code may change both and not put them back.
#pragma once

#include <cstdint>
#include <string>

namespace dcpcheck {

// Puts the thread into the mode that a program starts in: to nearest, ties to even, subnormal numbers kept, no traps. The
// mode from before is back when the object goes.
class DefaultFloatingPoint {
 public:
  DefaultFloatingPoint();
  ~DefaultFloatingPoint();
  DefaultFloatingPoint(const DefaultFloatingPoint&) = delete;
  DefaultFloatingPoint& operator=(const DefaultFloatingPoint&) = delete;

  // What is no longer as the constructor put it, as "rounding is toward zero"; "" where all is.
  std::string changed() const;

 private:
  std::uint32_t sse_ = 0;  // MXCSR; elsewhere the rounding of <cfenv>
  std::uint16_t x87_ = 0;  // its control word
};

}  // namespace dcpcheck
