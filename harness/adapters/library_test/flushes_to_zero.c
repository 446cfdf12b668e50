#if defined(__x86_64__)
#include <immintrin.h>
#define RUN                          \
  _mm_setcsr(_mm_getcsr() | 0x8040); \
  return DCPCHECK_OK;
#endif
#include "library.h"
