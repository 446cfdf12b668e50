#include <string.h>
#define RUN                                            \
  memset(launch->message, 0x41, launch->message_size); \
  return DCPCHECK_REFUSED;
#include "library.h"
