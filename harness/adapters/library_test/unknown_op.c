#define OP "fused_eh_nrom"
#include "library.h"
