// compute_slot_mapping on CUDA. Included from .cu files only.
#pragma once

#include "kernels/compute_slot_mapping/compute_slot_mapping.cuh"
#include "kernels/launch_cuda.cuh"

namespace kernels::compute_slot_mapping {

// Queues the kernel on `stream` (a cudaStream_t).
template <class Decisions>
CudaResult launch_cuda(const Args& args, void* stream) {
  return kernels::launch_cuda<Body<Decisions>>(grid(args), 0, args, stream);
}

}  // namespace kernels::compute_slot_mapping
