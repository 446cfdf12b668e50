// An example of a kernel for dcpcheck that needs no code around it: fused_eh_norm as a cubin, which the manifest beside this
// file describes. nvcc -std=c++20 -arch=sm_90 -cubin makes it.
#include <cstdint>

#include <cuda_bf16.h>

namespace {

constexpr int kThreads = 256;

// One of the two inputs, with what belongs to it.
struct Half {
  const __nv_bfloat16* rows;
  std::int64_t stride;
  const __nv_bfloat16* weight;
  float eps;
};

// N elements that are loaded and stored as one.
template <int N>
struct alignas(N * sizeof(__nv_bfloat16)) Vector {
  __nv_bfloat16 of[N];
};

// Block x: the token; block y: the half of its row. `partial`: kThreads floats.
template <int N>
__device__ void norm(const Half& half, bool zeroed, std::int64_t token, std::int64_t width, bool rounded, __nv_bfloat16* to,
                     float* partial) {
  const auto* const row = reinterpret_cast<const Vector<N>*>(half.rows + token * half.stride);
  const auto* const weight = reinterpret_cast<const Vector<N>*>(half.weight);
  float squares = 0;
  for (std::int64_t i = threadIdx.x; i < width / N; i += kThreads) {
    const Vector<N> loaded = row[i];
    for (const __nv_bfloat16 element : loaded.of) {
      const float x = zeroed ? 0.0F : __bfloat162float(element);
      squares += x * x;
    }
  }
  partial[threadIdx.x] = squares;
  __syncthreads();
  for (int n = kThreads / 2; n > 0; n /= 2) {
    if (threadIdx.x < n) partial[threadIdx.x] += partial[threadIdx.x + n];
    __syncthreads();
  }
  const float scale = __fdiv_rn(1.0F, __fsqrt_rn(__fdiv_rn(partial[0], static_cast<float>(width)) + half.eps));
  for (std::int64_t i = threadIdx.x; i < width / N; i += kThreads) {
    Vector<N> loaded = row[i];
    const Vector<N> factors = weight[i];
    for (int k = 0; k < N; ++k) {
      float normed = (zeroed ? 0.0F : __bfloat162float(loaded.of[k])) * scale;
      if (rounded) normed = __bfloat162float(__float2bfloat16_rn(normed));
      loaded.of[k] = __float2bfloat16_rn(normed * __bfloat162float(factors.of[k]));
    }
    reinterpret_cast<Vector<N>*>(to)[i] = loaded;
  }
}

}  // namespace

// For any strides.
extern "C" __global__ void eh_norm(Half embeds, Half hidden, const std::int64_t* positions, std::int64_t width,
                                   std::int8_t rounded, __nv_bfloat16* out, std::int64_t out_stride) {
  __shared__ float partial[kThreads];
  const std::int64_t token = blockIdx.x;
  norm<1>(blockIdx.y == 0 ? embeds : hidden, blockIdx.y == 0 && positions[token] == 0, token, width, rounded != 0,
          out + token * out_stride + blockIdx.y * width, partial);
}

// Eight elements at a time: all addresses, widths and strides must be multiples of 16 bytes. The partial sums lie in dynamic
// shared memory.
extern "C" __global__ void eh_norm_by_8(Half embeds, Half hidden, const std::int64_t* positions, std::int32_t width,
                                        std::int8_t rounded, __nv_bfloat16* out, std::int64_t out_stride) {
  extern __shared__ float partial[];
  const std::int64_t token = blockIdx.x;
  norm<8>(blockIdx.y == 0 ? embeds : hidden, blockIdx.y == 0 && positions[token] == 0, token, width, rounded != 0,
          out + token * out_stride + blockIdx.y * std::int64_t{width}, partial);
}
