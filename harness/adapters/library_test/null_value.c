#define OPTION \
  { "norm_round", NULL }
#include "library.h"
