#define OP "generate"
#include "library.h"
