#define REQUIREMENT \
  { "embeds_eps > 0", NULL }
#include "library.h"
