#include <fenv.h>
#define RUN              \
  fesetround(FE_UPWARD); \
  return DCPCHECK_OK;
#include "library.h"
