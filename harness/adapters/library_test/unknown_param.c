#define REQUIREMENT \
  { "hidden_sise % 8 == 0", NULL }
#include "library.h"
