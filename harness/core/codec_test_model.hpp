// For tests of the codecs: a naive model of rounding, in doubles and by search, that shares nothing with them.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

// The toolkit's own conversions run on the host too, and compile without nvcc where their folder is an include folder.
#if __has_include(<cuda_bf16.h>) && __has_include(<cuda_fp8.h>)
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#define DCPCHECK_TOOLKIT_CODECS 1
#else
#define DCPCHECK_TOOLKIT_CODECS 0
#endif

namespace dcpcheck::model {

// The value of a format's magnitude code, by its definition: (1.m or 0.m) * 2^(e - bias).
inline double value(int code, int mantissa_bits, int bias) {
  const int exponent = code >> mantissa_bits;
  const int mantissa = code & ((1 << mantissa_bits) - 1);
  if (exponent == 0) return std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

// The values of all magnitude codes of a format, one more than it has finite ones: rounding to that one is overflow.
class Table {
 public:
  Table(int codes, int mantissa_bits, int bias) {
    for (int code = 0; code <= codes; ++code) values_.push_back(value(code, mantissa_bits, bias));
  }

  // Whether `magnitude` rounds to a code past `code`: nearest, ties to even.
  bool past(double magnitude, int code) const {
    const double half = (values_[static_cast<std::size_t>(code)] + values_[static_cast<std::size_t>(code) + 1]) / 2;
    return magnitude > half || (magnitude == half && code % 2 == 1);
  }

  // The code nearest to `magnitude`, found by bisection; the last one stands for overflow.
  int nearest(double magnitude) const {
    int low = 0;
    int high = static_cast<int>(values_.size()) - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (past(magnitude, middle)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  // nearest() for magnitudes that never fall from call to call, `code` being the last answer.
  int nearest_from(int code, double magnitude) const {
    while (code + 1 < static_cast<int>(values_.size()) && past(magnitude, code)) ++code;
    return code;
  }

 private:
  std::vector<double> values_;
};

inline Table bf16_table() { return {0x7F80, 7, 127}; }  // the last stands for infinity
inline Table e4m3_table() { return {0x7F, 3, 7}; }      // the last, 480, is where NaN is

}  // namespace dcpcheck::model
