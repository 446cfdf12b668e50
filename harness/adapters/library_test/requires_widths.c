#define REQUIREMENT \
  { "hidden_size % 8 == 0", "rows of a multiple of 8" }
#include "library.h"
