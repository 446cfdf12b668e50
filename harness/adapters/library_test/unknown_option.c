#define OPTION \
  { "norm_raund", "bf16" }
#include "library.h"
