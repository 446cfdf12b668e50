#define TENSORS tensors
#define TENSOR_COUNT 1
#define TENSOR "outt"
#include "library.h"
