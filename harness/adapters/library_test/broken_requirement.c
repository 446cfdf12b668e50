#define REQUIREMENT \
  { "hidden_size %", NULL }
#include "library.h"
