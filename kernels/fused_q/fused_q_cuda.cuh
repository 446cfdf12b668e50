// fused_q on CUDA. Included from .cu files only.
#pragma once

#include "kernels/fused_q/fused_q.cuh"
#include "kernels/launch_cuda.cuh"

namespace kernels::fused_q {

// Queues the kernel on `stream` (a cudaStream_t).
template <class Decisions>
CudaResult launch_cuda(const Args& args, void* stream) {
  return kernels::launch_cuda<Body<Decisions>>(grid(args), scratch(args), args, stream);
}

}  // namespace kernels::fused_q
