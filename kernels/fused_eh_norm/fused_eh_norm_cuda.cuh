// fused_eh_norm on CUDA. Included from .cu files only.
#pragma once

#include "kernels/fused_eh_norm/fused_eh_norm.cuh"
#include "kernels/launch_cuda.cuh"

namespace kernels::fused_eh_norm {

// Queues the kernel on `stream` (a cudaStream_t).
template <class Decisions>
CudaResult launch_cuda(const Args& args, void* stream) {
  return kernels::launch_cuda<Body<Decisions>>(grid(args), 0, args, stream);
}

}  // namespace kernels::fused_eh_norm
