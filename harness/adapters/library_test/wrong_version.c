#define VERSION 999
#include "library.h"
