/* A library without a defect, but for what a test defines in the place of one of these before it includes this. */
#include "dcpcheck_kernel.h"

#ifndef VERSION
#define VERSION DCPCHECK_ABI_VERSION
#endif
#ifndef DEVICES
#define DEVICES DCPCHECK_HOST
#endif
#ifndef OP
#define OP "fused_eh_norm"
#endif
#ifndef NAME
#define NAME "a test's"
#endif
#ifndef OPTION
#define OPTION \
  { "division", "rn" }
#endif
#ifndef OPTIONS
#define OPTIONS options
#endif
#ifndef OPTION_COUNT
#define OPTION_COUNT 1
#endif
#ifndef TENSOR
#define TENSOR "out"
#endif
#ifndef TENSORS
#define TENSORS NULL
#endif
#ifndef TENSOR_COUNT
#define TENSOR_COUNT 0
#endif
#ifndef REQUIREMENT
#define REQUIREMENT \
  { "hidden_size > 0", NULL }
#endif
#ifndef RUN
#define RUN return DCPCHECK_OK;
#endif

static const dcpcheck_option options[] = {OPTION};
static const char* const tensors[] = {TENSOR};
static const dcpcheck_requirement requirements[] = {REQUIREMENT};

const dcpcheck_description* dcpcheck_describe(void) {
  static const dcpcheck_description description = {VERSION,      DEVICES, OP,           NAME,         NULL, OPTIONS,
                                                   OPTION_COUNT, TENSORS, TENSOR_COUNT, requirements, 1};
  (void)options;
  (void)tensors;
  return &description;
}

#ifndef NO_RUN
int dcpcheck_run(const dcpcheck_launch* launch) {
  (void)launch;
  RUN
}
#endif
