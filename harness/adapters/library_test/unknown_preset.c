#define OP "fused_norm_rope"
#define REQUIREMENT \
  { "q_lora_rank > 0", NULL }
#define OPTION \
  { DCPCHECK_PRESET, "vllm_inplace" }
#include "library.h"
