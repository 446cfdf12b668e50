#include <stdio.h>
#define RUN                                                        \
  snprintf(launch->message, launch->message_size, "no such grid"); \
  return DCPCHECK_REFUSED;
#include "library.h"
