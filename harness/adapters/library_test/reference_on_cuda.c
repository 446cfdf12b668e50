/* Of an op of a user's own: what is right of it cannot be asked on the host. */
#define OP "insert_mxfp4"
#define DEVICES DCPCHECK_CUDA
#define OPTION_COUNT 0
#define REQUIREMENT \
  { "T >= 0", NULL }
#include "library.h"
