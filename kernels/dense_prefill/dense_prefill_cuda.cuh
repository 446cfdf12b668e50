// dense_prefill on CUDA. Included from .cu files only.
#pragma once

#include "kernels/dense_prefill/dense_prefill.cuh"
#include "kernels/launch_cuda.cuh"

namespace kernels::dense_prefill {

// Queues the kernel on `stream` (a cudaStream_t). A block keeps its scores in shared memory: where a block may have 227 KiB of
// it, as on an H200, some 56,000 keys are taken, less the query's width, and more are refused.
template <class Decisions>
CudaResult launch_cuda(const Args& args, void* stream) {
  return kernels::launch_cuda<Body<Decisions>>(grid(args), scratch(args), args, stream);
}

}  // namespace kernels::dense_prefill
