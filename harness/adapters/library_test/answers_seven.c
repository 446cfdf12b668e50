#define RUN return 7;
#include "library.h"
