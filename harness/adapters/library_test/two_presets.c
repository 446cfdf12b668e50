#define OP "fused_norm_rope"
#define REQUIREMENT \
  { "q_lora_rank > 0", NULL }
#define OPTION \
  { DCPCHECK_PRESET, "vllm_in_place" }, { DCPCHECK_PRESET, "vllm_packed" }
#define OPTION_COUNT 2
#include "library.h"
