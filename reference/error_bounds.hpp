// Bounds on what fp32 arithmetic may do to a contract's values, whatever the order of operations.
//
// u = 2^-24 is fp32's unit roundoff: a correctly rounded operation gives x(1 + d), |d| <= u, unless it underflows, when
// it is off by at most 2^-150.
//
//  * Sums. C.-P. Jeannerod and S. M. Rump, "Improved error bounds for inner products in floating-point arithmetic"
//    (SIAM J. Matrix Anal. Appl. 34, 2013): n numbers added in any order give a sum that is off by at most
//    (n - 1) u sum|x_i|, with no term of second order. In a tree of depth h each x_i meets h additions, and the bound is
//    h u / (1 - h u) sum|x_i| (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", section 4.2).
//  * Functions. CUDA C++ Programming Guide, "Mathematical Functions": rsqrtf at most 2 ulp (4u), 1 / sqrtf both
//    correctly rounded (2u); PTX ISA: div.full.f32 at most 2 ulp (4u), sqrt.approx.f32 at most 2^-23 (2u).
//  * Products of two bf16 numbers have 16 significant bits and are exact in fp32.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

namespace dcpcheck::reference {

constexpr double u = 0x1p-24;
constexpr double underflow = 0x1p-150;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double fp32_max = 0x1.fffffep127;
// Products from here on are taken to overflow in some order of operations.
constexpr double may_overflow = 0x1.fffp127;
// All bounds are stretched by this: it covers what fp64 loses itself (2^-53 where the bound has a 2^-24) and terms of
// second order.
constexpr double slack = 1 + 0x1p-18;

// The arithmetic that a contract lets a kernel have.
struct Arithmetic {
  int lanes = 0;               // ReferenceOptions::lanes
  bool full_division = false;  // contract division: full

  // Relative to sum|x_i|: what a sum of n numbers may be off by. n 2^-53 is the reference's own sum, in index order.
  double sum(std::int64_t n) const {
    double bound = static_cast<double>(n - 1) * u;
    if (lanes > 0) {
      // A running sum's first addition is to 0, which is exact.
      const std::int64_t running = (n + lanes - 1) / lanes - 1;
      const auto depth = static_cast<double>(running + std::bit_width(static_cast<std::uint64_t>(lanes) - 1));
      bound = std::min(bound, depth * u / (1 - depth * u));
    }
    return bound + static_cast<double>(n) * 0x1p-53;
  }
  // Relative: division of a sum by n, or multiplication by fl(1 / n), which is two roundings. Exact where n = 2^k.
  double mean(std::int64_t n) const {
    if (full_division) return 4 * u;
    return std::has_single_bit(static_cast<std::uint64_t>(n)) ? 0 : 2 * u;
  }
  // Relative: 1 / sqrt(x), by rsqrtf or by a square root and a division.
  double rsqrt() const { return full_division ? 6 * u : 4 * u; }
};

}  // namespace dcpcheck::reference
