#define REQUIREMENT \
  { "T / (T - T) == 0", NULL }
#include "library.h"
