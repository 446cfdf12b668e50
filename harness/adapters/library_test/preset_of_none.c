#define OPTION \
  { DCPCHECK_PRESET, "vllm_in_place" }
#include "library.h"
