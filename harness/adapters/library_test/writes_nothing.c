#define NAME "idle"
#include "library.h"
