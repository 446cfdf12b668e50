// The CUDA half of block.cuh: runs a body as a kernel. Included from .cu files only.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "kernels/block.cuh"

namespace kernels {

namespace detail {

// CUDA's errors about a launch itself leave the context as it was; all others do not.
inline CudaResult result_of(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return {};
  const std::string text = std::string(cudaGetErrorString(error)) + " (" + what + ")";
  switch (error) {
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidValue:
    case cudaErrorLaunchOutOfResources: return {text, ""};
    default: return {"", text};
  }
}

template <class Body, class Args>
__global__ void __launch_bounds__(kLanes) run_block(const __grid_constant__ Args args) {
  extern __shared__ float shared[];
  const Block block(shared);
  Body::run(args, block);
}

}  // namespace detail

// Runs Body::run(args, block) for each block of the grid on `stream` (a cudaStream_t); blocks get `scratch` floats
// each. Returns once the launch is queued.
template <class Body, class Args>
CudaResult launch_cuda(const Grid& grid, std::size_t scratch, const Args& args, void* stream) {
  if (std::string why = refusal(grid); !why.empty()) return {why, ""};
  if (empty(grid)) return {};
  const auto kernel = detail::run_block<Body, Args>;
  // An unrolled loop over scratch may load up to a vector past its last turn, and drop it: room for that, too.
  constexpr std::size_t kReadAhead = 4;
  const std::size_t bytes = (kLanes + scratch + kReadAhead) * sizeof(float);
  constexpr std::size_t kWithoutAsking = 48 * 1024;  // more shared memory than this must be opted in to
  if (bytes > kWithoutAsking) {
    const cudaError_t error =
        bytes > 0x7FFFFFFF ? cudaErrorInvalidValue
                           : cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    if (error != cudaSuccess) {
      (void)cudaGetLastError();  // it has been reported: the next launch must not find it
      return detail::result_of(error, std::to_string(bytes) + " bytes of shared memory a block");
    }
  }
  const dim3 blocks(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z));
  kernel<<<blocks, kLanes, bytes, static_cast<cudaStream_t>(stream)>>>(args);
  return detail::result_of(cudaGetLastError(), "kernel launch");
}

}  // namespace kernels
