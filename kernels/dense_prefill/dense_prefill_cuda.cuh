// dense_prefill on CUDA. Included from .cu files only.
#pragma once

#include "kernels/dense_prefill/dense_prefill.cuh"
#include "kernels/launch_cuda.cuh"

namespace kernels::dense_prefill {

// Queues the kernel on `stream` (a cudaStream_t).
template <class Decisions>
CudaResult launch_cuda(const Args& args, void* stream) {
  return kernels::launch_cuda<Body<Decisions>>(grid(args), scratch(args), args, stream);
}

}  // namespace kernels::dense_prefill
