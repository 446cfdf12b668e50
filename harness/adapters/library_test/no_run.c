#define NO_RUN
#include "library.h"
