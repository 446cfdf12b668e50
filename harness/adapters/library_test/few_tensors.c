#define TENSORS tensors
#define TENSOR_COUNT 1
#include "library.h"
