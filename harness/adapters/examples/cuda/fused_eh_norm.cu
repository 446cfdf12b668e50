// An example of a kernel for dcpcheck: fused_eh_norm on the GPU, from the header alone.
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <cuda_bf16.h>

#include "dcpcheck_kernel.h"

namespace {

constexpr int kThreads = 256;

// One of the two inputs, with what belongs to it.
struct Half {
  const __nv_bfloat16* rows;
  std::int64_t stride;
  const __nv_bfloat16* weight;
  float eps;
};

// Block x: the token; block y: the half of its row.
__global__ void norm(Half embeds, Half hidden, const std::int64_t* positions, std::int64_t width, bool rounded,
                     __nv_bfloat16* out, std::int64_t out_stride) {
  __shared__ float partial[kThreads];
  const std::int64_t token = blockIdx.x;
  const Half half = blockIdx.y == 0 ? embeds : hidden;
  const bool zeroed = blockIdx.y == 0 && positions[token] == 0;
  const __nv_bfloat16* const row = half.rows + token * half.stride;
  float squares = 0;
  for (std::int64_t i = threadIdx.x; i < width; i += kThreads) {
    const float x = zeroed ? 0.0F : __bfloat162float(row[i]);
    squares += x * x;
  }
  partial[threadIdx.x] = squares;
  __syncthreads();
  for (int n = kThreads / 2; n > 0; n /= 2) {
    if (threadIdx.x < n) partial[threadIdx.x] += partial[threadIdx.x + n];
    __syncthreads();
  }
  const float scale = __fdiv_rn(1.0F, __fsqrt_rn(__fdiv_rn(partial[0], static_cast<float>(width)) + half.eps));
  __nv_bfloat16* const to = out + token * out_stride + blockIdx.y * width;
  for (std::int64_t i = threadIdx.x; i < width; i += kThreads) {
    float normed = (zeroed ? 0.0F : __bfloat162float(row[i])) * scale;
    if (rounded) normed = __bfloat162float(__float2bfloat16_rn(normed));
    to[i] = __float2bfloat16_rn(normed * __bfloat162float(half.weight[i]));
  }
}

template <class T>
T* data_of(const dcpcheck_launch* launch, const char* name) {
  return static_cast<T*>(dcpcheck_find_tensor(launch, name)->data);
}

Half half_of(const dcpcheck_launch* launch, const char* rows, const char* weight, const char* eps) {
  return {data_of<const __nv_bfloat16>(launch, rows), dcpcheck_find_tensor(launch, rows)->strides[0],
          data_of<const __nv_bfloat16>(launch, weight), dcpcheck_find_scalar(launch, eps)->number};
}

const dcpcheck_option kOptions[] = {{"norm_round", "none"}, {"norm_round", "bf16"}, {"division", "rn"}};

const dcpcheck_description kDescription = {
    DCPCHECK_ABI_VERSION,
    DCPCHECK_CUDA,
    "fused_eh_norm",
    "fused_eh_norm example",
    "A block for each token and half of its row.",
    kOptions,
    sizeof kOptions / sizeof *kOptions,
    nullptr,
    0,
    nullptr,
    0,
};

}  // namespace

const dcpcheck_description* dcpcheck_describe() { return &kDescription; }

int dcpcheck_run(const dcpcheck_launch* launch) {
  const dcpcheck_tensor* const out = dcpcheck_find_tensor(launch, "out");
  if (out->shape[0] == 0) return DCPCHECK_OK;  // CUDA has no empty grid
  const dim3 grid(static_cast<unsigned>(out->shape[0]), 2);
  norm<<<grid, kThreads, 0, static_cast<cudaStream_t>(launch->stream)>>>(
      half_of(launch, "embeds", "embeds_weight", "embeds_eps"),
      half_of(launch, "previous_hidden", "hidden_weight", "hidden_eps"), data_of<const std::int64_t>(launch, "positions"),
      dcpcheck_find_scalar(launch, "hidden_size")->integer,
      std::strcmp(dcpcheck_find_scalar(launch, "option.norm_round")->text, "bf16") == 0, static_cast<__nv_bfloat16*>(out->data),
      out->strides[0]);
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return DCPCHECK_OK;
  std::snprintf(launch->message, launch->message_size, "%s", cudaGetErrorString(error));
  return DCPCHECK_REFUSED;
}
