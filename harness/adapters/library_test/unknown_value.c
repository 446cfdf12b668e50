#define OPTION \
  { "norm_round", "fp16" }
#include "library.h"
