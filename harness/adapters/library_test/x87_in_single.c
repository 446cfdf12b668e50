#if defined(__x86_64__)
#define RUN                                   \
  const unsigned short word = 0x007F;         \
  __asm__ volatile("fldcw %0" : : "m"(word)); \
  return DCPCHECK_OK;
#endif
#include "library.h"
