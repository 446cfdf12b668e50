/* Of an op of a user's own: it does not answer. */
#define OP "insert_mxfp4"
#define OPTION_COUNT 0
#define REQUIREMENT \
  { "T >= 0", NULL }
#define RUN return DCPCHECK_REFUSED;
#include "library.h"
