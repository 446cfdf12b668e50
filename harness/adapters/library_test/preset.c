#define OP "fused_norm_rope"
#define REQUIREMENT \
  { "q_lora_rank > 0", "a query" }
#define OPTION \
  { "tile_scale", "pow2" }, { DCPCHECK_PRESET, "vllm_in_place" }
#define OPTION_COUNT 2
#include "library.h"
