int defined_nowhere(void);
#define RUN return defined_nowhere();
#include "library.h"
