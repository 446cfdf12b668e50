#include <stdexcept>

#define RUN throw std::runtime_error("out of tiles");
#include "library.h"
