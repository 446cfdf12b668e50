#define DEVICES DCPCHECK_CUDA
#include "library.h"
