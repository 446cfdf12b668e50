#define OPTIONS NULL
#include "library.h"
