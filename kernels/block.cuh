// A portable thread block: a kernel's body is written once against it and compiled for the host and for CUDA.
//
// A body is loops over the block's elements (each) between barriers (sync), and reductions (sum, max). On the device
// 128 threads share a loop, element i always going to thread i % 128; on the host one thread runs it in order. What an
// element does must not depend on other elements of the same loop, nor on an earlier loop's elements of another index
// modulo 128, unless a sync() lies between.
//
// A reduction has one order, whatever runs it: lane l adds elements l, l + 128, … in that order, then a binary tree
// joins the lanes, acc[l] += acc[l + s] for s = 64, 32, … 1. So host and device give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "harness/core/host_device.hpp"
#include "harness/core/parallel.hpp"

// Tells g++ that a loop's iterations are independent, which each() demands of its callers: without it a loop over
// arrays that do overlap, as in-place outputs do, would not become SIMD. (clang's counterpart warns where it has no
// effect, and clang does as well without.)
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define KERNELS_INDEPENDENT _Pragma("GCC ivdep")
#else
#define KERNELS_INDEPENDENT
#endif

namespace kernels {

// Whether two functions are one. As template arguments, since their addresses are no constants under sanitizers.
template <auto A, auto B>
inline constexpr bool same_function =
    std::is_same_v<std::integral_constant<decltype(A), A>, std::integral_constant<decltype(B), B>>;

// Threads of a block, and running sums of a reduction.
inline constexpr int kLanes = 128;

// How many blocks a launch has. 64 bits, so that a size too large for CUDA is refused and not cut off.
struct Grid {
  std::int64_t x = 1, y = 1, z = 1;
};

// Whether there is no block to run: such a launch does nothing, as CUDA itself would call a grid of 0 an error.
inline bool empty(const Grid& grid) { return grid.x == 0 || grid.y == 0 || grid.z == 0; }

// Why CUDA would refuse the grid, or "". The host holds to the same limits, so that a case that passes there can run
// on a device.
inline std::string refusal(const Grid& grid) {
  const auto within = [](std::int64_t n, std::int64_t limit) { return n >= 0 && n <= limit; };
  if (within(grid.x, 2147483647) && within(grid.y, 65535) && within(grid.z, 65535)) return "";
  return std::string("invalid configuration argument: a grid of ") + std::to_string(grid.x) + " x " + std::to_string(grid.y) +
         " x " + std::to_string(grid.z) + " blocks is over the limit of 2147483647 x 65535 x 65535";
}

// What became of a CUDA launch. Both are empty where it was accepted.
struct CudaResult {
  std::string refused;  // why this launch was refused: another one may still succeed
  std::string lost;     // why the device can no longer be used
};

// One block of a launch: where it lies in the grid, and what its threads do together.
class Block {
 public:
  std::int64_t x = 0, y = 0, z = 0;  // its place in the grid
  float* scratch = nullptr;          // memory that the block's threads share, as many floats as the launch asked for

  // Calls f(i) for each i of [0, n). No barrier follows.
  template <class F>
  DCPCHECK_HD void each(std::int64_t n, F f) const {
#if defined(__CUDA_ARCH__)
    for (std::int64_t i = threadIdx.x; i < n; i += kLanes) f(i);
#else
    KERNELS_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) f(i);
#endif
  }

  // Waits for all threads of the block; what they wrote to scratch is then seen by all.
  DCPCHECK_HD void sync() const {
#if defined(__CUDA_ARCH__)
    __syncthreads();
#endif
  }

  // The sum of term(i) over [0, n), in the order above; +0 where n is 0. All threads of the block must call it.
  template <class F>
  DCPCHECK_HD float sum(std::int64_t n, F term) const {
    return reduce(0.0F, n, term, [](float a, float b) { return a + b; });
  }

  // The largest of term(i) over [0, n) and `least`. A NaN never wins.
  template <class F>
  DCPCHECK_HD float max(float least, std::int64_t n, F term) const {
    return reduce(least, n, term, [](float a, float b) { return b > a ? b : a; });
  }

#if defined(__CUDACC__)
  // The device's block. `shared` has kLanes floats for the reductions, then the scratch.
  __device__ explicit Block(float* shared)
      : x(blockIdx.x), y(blockIdx.y), z(blockIdx.z), scratch(shared + kLanes), lanes_(shared) {}
#endif
  Block() = default;

 private:
  // Lanes without an element hold `start`, which is neutral.
  template <class F, class Join>
  DCPCHECK_HD float reduce(float start, std::int64_t n, F term, Join join) const {
#if defined(__CUDA_ARCH__)
    const int lane = static_cast<int>(threadIdx.x);
    float acc = start;
    for (std::int64_t i = lane; i < n; i += kLanes) acc = join(acc, term(i));
    lanes_[lane] = acc;
    __syncthreads();
    if (lane < 32) {
      // The tree's steps s = 64 and s = 32 for this lane: what lanes l and l + 32 of step 64 gave is joined.
      acc = join(join(lanes_[lane], lanes_[lane + 64]), join(lanes_[lane + 32], lanes_[lane + 96]));
      for (int s = 16; s > 0; s /= 2) acc = join(acc, __shfl_down_sync(0xFFFFFFFFU, acc, static_cast<unsigned>(s)));
      if (lane == 0) lanes_[0] = acc;
    }
    __syncthreads();
    acc = lanes_[0];
    __syncthreads();  // before the next reduction writes the lanes
    return acc;
#else
    alignas(64) float acc[kLanes];
    for (float& lane : acc) lane = start;
    std::int64_t base = 0;
    for (; base + kLanes <= n; base += kLanes) {
      KERNELS_INDEPENDENT
      for (int lane = 0; lane < kLanes; ++lane) acc[lane] = join(acc[lane], term(base + lane));
    }
    for (int lane = 0; base + lane < n; ++lane) acc[lane] = join(acc[lane], term(base + lane));
    for (int s = kLanes / 2; s > 0; s /= 2) {
      for (int lane = 0; lane < s; ++lane) acc[lane] = join(acc[lane], acc[lane + s]);
    }
    return acc[0];
#endif
  }

  [[maybe_unused]] float* lanes_ = nullptr;  // device: kLanes floats that the threads share
};

// Runs body(block) for each block of the grid, on `threads` threads; blocks get `scratch` floats each. Returns why the
// launch is refused, or "".
template <class Body>
std::string launch_host(const Grid& grid, std::size_t scratch, int threads, Body body) {
  if (std::string why = refusal(grid); !why.empty()) return why;
  if (empty(grid)) return "";
  // x outermost: a token's blocks run one after the other, and parts are even where the y of a block is its role.
  const std::int64_t blocks_per_x = grid.y * grid.z;
  constexpr std::int64_t kGrain = 64;  // blocks that are worth a thread's start
  const std::int64_t grain = (kGrain + blocks_per_x - 1) / blocks_per_x;
  dcpcheck::parallel_parts(grid.x, threads, grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> memory(scratch);
    Block block;
    block.scratch = memory.data();
    for (block.x = begin; block.x < end; ++block.x) {
      for (block.y = 0; block.y < grid.y; ++block.y) {
        for (block.z = 0; block.z < grid.z; ++block.z) body(static_cast<const Block&>(block));
      }
    }
  });
  return "";
}

}  // namespace kernels
