// gather_cache on CUDA. Included from .cu files only.
#pragma once

#include "kernels/gather_cache/gather_cache.cuh"
#include "kernels/launch_cuda.cuh"

namespace kernels::gather_cache {

// Queues the kernel on `stream` (a cudaStream_t).
template <class Decisions>
CudaResult launch_cuda(const Args& args, void* stream) {
  return kernels::launch_cuda<Body<Decisions>>(grid(args), 0, args, stream);
}

}  // namespace kernels::gather_cache
