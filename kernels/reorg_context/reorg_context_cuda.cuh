// reorg_context on CUDA. Included from .cu files only.
#pragma once

#include "kernels/launch_cuda.cuh"
#include "kernels/reorg_context/reorg_context.cuh"

namespace kernels::reorg_context {

// Queues the kernel on `stream` (a cudaStream_t).
template <class Decisions>
CudaResult launch_cuda(const Args& args, void* stream) {
  return kernels::launch_cuda<Body<Decisions>>(grid(args), 0, args, stream);
}

}  // namespace kernels::reorg_context
