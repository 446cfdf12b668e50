#define DEVICES 0
#include "library.h"
