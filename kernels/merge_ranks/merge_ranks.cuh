// merge_ranks: the attention outputs that W ranks got over their own keys, merged by their LSEs. One block a token and
// head.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/merge.cuh"

namespace kernels::merge_ranks {

// A launch's parameters. Strides count elements.
struct Args {
  const float* partial_out = nullptr;  // [ranks, tokens, heads, width], dense but for the first axis
  std::int64_t out_rank_stride = 0;
  const float* partial_lse = nullptr;  // [ranks, tokens, heads], likewise
  std::int64_t lse_rank_stride = 0;
  float* out = nullptr;  // [tokens, heads, width]
  std::int64_t out_stride = 0;
  float* lse = nullptr;  // [tokens, heads]
  std::int64_t lse_stride = 0;
  std::int64_t ranks = 0;
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  std::int64_t width = 0;
  bool base_2 = false;  // LSEs are logarithms to base 2
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
  // The parts of one token and head.
  struct Parts {
    const float* first_out;
    std::int64_t out_stride;
    const float* first_lse;
    std::int64_t lse_stride;

    DCPCHECK_HD float lse(std::int64_t r) const { return first_lse[r * lse_stride]; }
    DCPCHECK_HD const float* out(std::int64_t r) const { return first_out + r * out_stride; }
  };

  static DCPCHECK_HD void run(const Args& args, const Block& block) {
    const std::int64_t at = block.x * args.heads + block.y;
    const Parts parts{args.partial_out + at * args.width, args.out_rank_stride, args.partial_lse + at, args.lse_rank_stride};
    merge<Decisions>(block, args.ranks, args.width, args.base_2, parts,
                     args.out + block.x * args.out_stride + block.y * args.width,
                     args.lse + block.x * args.lse_stride + block.y);
  }
};

// The launch's grid: tokens on x, heads on y.
inline Grid grid(const Args& args) { return {args.tokens, args.heads, 1}; }

// Floats that a block keeps: a weight a rank.
inline std::size_t scratch(const Args& args) { return static_cast<std::size_t>(args.ranks); }

// Runs the kernel on the host. Returns why the launch is refused, or "".
template <class Decisions>
std::string launch_host(const Args& args, int threads) {
  return kernels::launch_host(grid(args), scratch(args), threads,
                              [&](const Block& block) { Body<Decisions>::run(args, block); });
}

}  // namespace kernels::merge_ranks
