// merge_chunks: two parts of an attention output, over the keys gone through so far (prefix) and over the next chunk of
// them (suffix), merged by their LSEs to base e. The result may lie on the prefix. One block a token and head.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/merge.cuh"

namespace kernels::merge_chunks {

// Outputs of a part, [tokens, heads, width], and its LSEs, [tokens, heads]. Strides count elements.
struct Part {
  const float* out = nullptr;
  std::int64_t out_stride = 0;
  const float* lse = nullptr;
  std::int64_t lse_stride = 0;
};

// A launch's parameters.
struct Args {
  Part prefix, suffix;
  float* out = nullptr;
  std::int64_t out_stride = 0;
  float* lse = nullptr;
  std::int64_t lse_stride = 0;
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  std::int64_t width = 0;
};

// The decisions of the kernel as it should be. A fault overrides one of them.
struct Fixed : MergeDecisions {};

// Whether `Decisions` overrides any: a fault that does not, by a slip in a name, would be the right kernel.
template <class Decisions>
constexpr bool overrides_a_decision() {
  return overrides_a_merge_decision<Decisions>();
}

// What one block does: head block.y of token block.x.
template <class Decisions>
struct Body {
  // The two parts of one token and head.
  struct Parts {
    Part prefix, suffix;
    std::int64_t token, head, width;

    DCPCHECK_HD const Part& of(std::int64_t r) const { return r == 0 ? prefix : suffix; }
    DCPCHECK_HD float lse(std::int64_t r) const { return of(r).lse[token * of(r).lse_stride + head]; }
    DCPCHECK_HD const float* out(std::int64_t r) const { return of(r).out + token * of(r).out_stride + head * width; }
  };

  static DCPCHECK_HD void run(const Args& args, const Block& block) {
    const Parts parts{args.prefix, args.suffix, block.x, block.y, args.width};
    merge<Decisions>(block, 2, args.width, false, parts, args.out + block.x * args.out_stride + block.y * args.width,
                     args.lse + block.x * args.lse_stride + block.y);
  }
};

// The launch's grid: tokens on x, heads on y.
inline Grid grid(const Args& args) { return {args.tokens, args.heads, 1}; }

// Floats that a block keeps: a weight a part.
inline std::size_t scratch(const Args& args) {
  (void)args;
  return 2;
}

// Runs the kernel on the host. Returns why the launch is refused, or "".
template <class Decisions>
std::string launch_host(const Args& args, int threads) {
  return kernels::launch_host(grid(args), scratch(args), threads,
                              [&](const Block& block) { Body<Decisions>::run(args, block); });
}

}  // namespace kernels::merge_chunks
