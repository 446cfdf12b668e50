// merge_chunks on CUDA. Included from .cu files only.
#pragma once

#include "kernels/launch_cuda.cuh"
#include "kernels/merge_chunks/merge_chunks.cuh"

namespace kernels::merge_chunks {

// Queues the kernel on `stream` (a cudaStream_t).
template <class Decisions>
CudaResult launch_cuda(const Args& args, void* stream) {
  return kernels::launch_cuda<Body<Decisions>>(grid(args), scratch(args), args, stream);
}

}  // namespace kernels::merge_chunks
