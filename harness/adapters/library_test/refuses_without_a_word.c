#define RUN return DCPCHECK_REFUSED;
#include "library.h"
