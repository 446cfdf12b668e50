#define OPTION_COUNT 5000
#include "library.h"
