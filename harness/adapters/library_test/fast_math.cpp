// The example of the host as a library is that is built with -ffast-math: loading it makes its thread flush subnormal numbers.
#include "examples/host/fused_eh_norm.cpp"  // NOLINT(bugprone-suspicious-include): the example itself

#if defined(__x86_64__)
#include <immintrin.h>

namespace {

const bool flushes = (_mm_setcsr(_mm_getcsr() | 0x8040), true);

}  // namespace
#endif
