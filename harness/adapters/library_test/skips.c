#include <stdio.h>
#define RUN                                                             \
  snprintf(launch->message, launch->message_size, "not on a Monday\n"); \
  return DCPCHECK_SKIP;
#include "library.h"
