// One code for all that is admissible of an element: what portable digests are taken of.
#pragma once

#include <cstdint>

#include "harness/oracle/admissible.hpp"
#include "harness/oracle/judge.hpp"

namespace dcpcheck {

// The code, as a bit pattern in the low bytes, that stands for every admissible one of element `index`; `scale` is the
// reference's own for it, not the one that a kernel stored, or 1. It is what the reference's value becomes, and every NaN the
// one that digests use. It follows from `expected` alone, so it is the same whatever right kernel ran, and wherever.
//
// An fp32 value with an error stands as its nearest bf16, widened: the last bits of fp64 are the C library's, which has more
// than one exp, and a value in ten million lies so near to the middle of two fp32 codes that those bits decide between them.
std::uint64_t canonical_code(const Admissible& expected, std::int64_t index, const Comparison& how, float scale);

}  // namespace dcpcheck
