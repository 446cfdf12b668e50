#define NAME ""
#include "library.h"
