// fused_norm_rope on CUDA. Included from .cu files only.
#pragma once

#include "kernels/fused_norm_rope/fused_norm_rope.cuh"
#include "kernels/launch_cuda.cuh"

namespace kernels::fused_norm_rope {

// Queues the kernel on `stream` (a cudaStream_t).
template <class Decisions>
CudaResult launch_cuda(const Args& args, void* stream) {
  return kernels::launch_cuda<Body<Decisions>>(grid<Decisions>(args), scratch(args), args, stream);
}

}  // namespace kernels::fused_norm_rope
