// dense_prefill: attention of a launch's new tokens over their request's rows of K and V. One block a token and head.
//
// K and V are not kept by head. A row of kv_c gives every head's: k_nope of head h is `nope` elements of it from h * nope
// on, v is `width` elements from kv_lora / 2 + h * width on, both going on at its start where it ends; k_pe is all heads'.
// The keys are the launch's own tokens, up to the query's own (causal), or the request's cached context, all of it.
//
// A score is summed in 8 running sums, element d of k_nope and of k_pe in sum d % 8; an output in 4, key j in sum j % 4: so
// the host's loops are over sums that do not depend on each other, and the order is the same everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/batch.cuh"
#include "kernels/block.cuh"
#include "kernels/math.cuh"

namespace kernels::dense_prefill {

inline constexpr int kDotSums = 8;  // running sums of a score …
inline constexpr int kKeySums = 4;  // … and of an output

// A launch's parameters. Strides count elements.
struct Args {
  const float* q = nullptr;  // [tokens, heads, nope + rope]
  std::int64_t q_stride = 0;
  const std::uint16_t* kv_c = nullptr;  // [keys, kv_lora], bf16
  std::int64_t kv_c_stride = 0;
  const std::uint16_t* k_pe = nullptr;  // [keys, rope], bf16
  std::int64_t k_pe_stride = 0;
  const std::int32_t* query_start_loc = nullptr;  // [requests + 1]: the first token of each request
  const std::int32_t* context_offsets = nullptr;  // [requests + 1]: its first key; nullptr: causal, tokens are the keys
  float* out = nullptr;                           // [tokens, heads, width]
  std::int64_t out_stride = 0;
  float* lse = nullptr;  // [tokens, heads], to base e
  std::int64_t lse_stride = 0;
  std::int64_t tokens = 0;  // of the launch, padding counted in
  std::int64_t requests = 0;
  std::int64_t heads = 0;
  std::int64_t first_head = 0;  // of all ranks' heads, the one that is this rank's first
  std::int64_t nope = 0, rope = 0, width = 0;
  std::int64_t kv_lora = 0;
  std::int64_t most_keys = 0;  // of any request
  float scale = 1;             // (nope + rope)^-1/2
};

// The decisions of the kernel as it should be. A fault overrides one of them.
struct Fixed {
  static constexpr const char* name = "";
  static constexpr const char* doc = "";

  // How many of its request's tokens the query of token `i` of the request sees.
  static DCPCHECK_HD std::int64_t causal_keys(std::int64_t i) { return i + 1; }
  // The request with whose context a query's ends, for a query of request `request`.
  static DCPCHECK_HD std::int64_t last_request(std::int64_t request) { return request; }
  static DCPCHECK_HD float scale(float contract) { return contract; }
  // How many elements of k_pe count.
  static DCPCHECK_HD std::int64_t rope(std::int64_t contract) { return contract; }
};

// Whether `Decisions` overrides any: a fault that does not, by a slip in a name, would be the right kernel.
template <class Decisions>
constexpr bool overrides_a_decision() {
  return !same_function<&Decisions::causal_keys, &Fixed::causal_keys> ||
         !same_function<&Decisions::last_request, &Fixed::last_request> || !same_function<&Decisions::scale, &Fixed::scale> ||
         !same_function<&Decisions::rope, &Fixed::rope>;
}

namespace detail {

// Elements of a row of kv_c from `start` on, going on at its start.
struct Window {
  std::int64_t start = 0, size = 0, kv_lora = 0;

  DCPCHECK_HD bool wraps() const { return start + size > kv_lora; }
  DCPCHECK_HD std::int64_t at(std::int64_t i) const { return (start + i) % kv_lora; }
};

DCPCHECK_HD inline Window window(std::int64_t start, std::int64_t size, std::int64_t kv_lora) {
  return {start % kv_lora, size, kv_lora};
}

// Adds x[i] * y(i) for i of [0, n) to sum i % kDotSums. The y are taken first, and sums are reached by numbers that do not
// depend on n: the host's compiler then makes SIMD of it, and the device's keeps them in registers.
template <class Y>
DCPCHECK_HD void add_products(float* __restrict sums, const float* x, std::int64_t n, Y y) {
  std::int64_t i = 0;
  for (; i + kDotSums <= n; i += kDotSums) {
    float taken[kDotSums];
    for (int s = 0; s < kDotSums; ++s) taken[s] = y(i + s);
    for (int s = 0; s < kDotSums; ++s) sums[s] = sums[s] + x[i + s] * taken[s];
  }
  for (int s = 0; s < kDotSums; ++s) {
    if (i + s < n) sums[s] = sums[s] + x[i + s] * y(i + s);
  }
}

DCPCHECK_HD inline float join(const float* sums) {
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

}  // namespace detail

// What one block does: head block.y of token block.x. Scratch: a score a key, then kKeySums outputs.
template <class Decisions>
struct Body {
  static DCPCHECK_HD void run(const Args& args, const Block& block) {
    if (block.x >= args.query_start_loc[args.requests]) return;  // padding
    float* const out = args.out + block.x * args.out_stride + block.y * args.width;
    float* const lse = args.lse + block.x * args.lse_stride + block.y;
    const Keys keys = keys_of(args, block.x);
    if (keys.count == 0) {
      block.each(args.width, [=](std::int64_t i) { out[i] = 0.0F; });
      block.each(1, [=](std::int64_t) { *lse = -dcpcheck::float_of_bits(0x7F800000U); });
      return;
    }
    float* const scores = block.scratch;
    score(args, block, keys, scores);
    const float largest =
        block.max(-dcpcheck::float_of_bits(0x7F800000U), keys.count, [=](std::int64_t j) { return scores[j]; });
    block.each(keys.count, [=](std::int64_t j) { scores[j] = exp(scores[j] - largest); });
    const float sum = block.sum(keys.count, [=](std::int64_t j) { return scores[j]; });
    block.sync();  // scores are read by other threads than wrote them
    add_values(args, block, keys, scores, sum, out);
    block.each(1, [=](std::int64_t) { *lse = largest + log(sum); });
  }

 private:
  struct Keys {
    std::int64_t first = 0, count = 0;
  };

  static DCPCHECK_HD Keys keys_of(const Args& args, std::int64_t token) {
    const std::int64_t request = request_of(args.query_start_loc, args.requests, token);
    const std::int64_t first = args.query_start_loc[request];
    Keys keys;
    if (args.context_offsets == nullptr) {
      const std::int64_t tokens = args.query_start_loc[request + 1] - first;
      const std::int64_t seen = Decisions::causal_keys(token - first);
      keys = {first, seen < tokens ? seen : tokens};
    } else {
      const std::int64_t last = Decisions::last_request(request);
      keys.first = args.context_offsets[request];
      keys.count = args.context_offsets[(last < args.requests ? last : args.requests - 1) + 1] - keys.first;
    }
    keys.count = keys.count < args.most_keys ? keys.count : args.most_keys;  // only a fault has more
    return keys;
  }

  static DCPCHECK_HD void score(const Args& args, const Block& block, const Keys& keys, float* scores) {
    const float* const q = args.q + block.x * args.q_stride + block.y * (args.nope + args.rope);
    const detail::Window k = detail::window((args.first_head + block.y) * args.nope, args.nope, args.kv_lora);
    const std::int64_t rope = Decisions::rope(args.rope);
    const float scale = Decisions::scale(args.scale);
    block.each(keys.count, [&](std::int64_t j) {
      const std::uint16_t* const kv_c = args.kv_c + (keys.first + j) * args.kv_c_stride;
      const std::uint16_t* const k_pe = args.k_pe + (keys.first + j) * args.k_pe_stride;
      float sums[kDotSums] = {};
      if (k.wraps()) {
        detail::add_products(sums, q, args.nope, [&](std::int64_t i) { return load_bf16(kv_c + k.at(i)); });
      } else {
        detail::add_products(sums, q, args.nope, [from = kv_c + k.start](std::int64_t i) { return load_bf16(from + i); });
      }
      detail::add_products(sums, q + args.nope, rope, [=](std::int64_t i) { return load_bf16(k_pe + i); });
      scores[j] = detail::join(sums) * scale;
    });
  }

  // out = sum of the values weighed by `powers`, divided by `sum`.
  static DCPCHECK_HD void add_values(const Args& args, const Block& block, const Keys& keys, const float* powers, float sum,
                                     float* out) {
    const std::int64_t width = args.width;
    const detail::Window v = detail::window(args.kv_lora / 2 + (args.first_head + block.y) * width, width, args.kv_lora);
    const std::uint16_t* const kv_c = args.kv_c + keys.first * args.kv_c_stride;
    float* const partial = block.scratch + args.most_keys;
#if defined(__CUDA_ARCH__)
    block.each(kKeySums * width, [&](std::int64_t at) {
      const std::int64_t column = v.at(at % width);
      float total = 0.0F;
      for (std::int64_t j = at / width; j < keys.count; j += kKeySums) {
        total = total + powers[j] * load_bf16(kv_c + j * args.kv_c_stride + column);
      }
      partial[at] = total;
    });
    block.sync();
#else
    // The same sums, a key at a time: along a row of kv_c they are neighbours.
    for (std::int64_t at = 0; at < kKeySums * width; ++at) partial[at] = 0.0F;
    for (std::int64_t j = 0; j < keys.count; ++j) {
      const std::uint16_t* const row = kv_c + j * args.kv_c_stride;
      float* const totals = partial + j % kKeySums * width;
      const float power = powers[j];
      if (v.wraps()) {
        for (std::int64_t i = 0; i < width; ++i) totals[i] = totals[i] + power * load_bf16(row + v.at(i));
      } else {
        const std::uint16_t* const from = row + v.start;
        KERNELS_INDEPENDENT
        for (std::int64_t i = 0; i < width; ++i) totals[i] = totals[i] + power * load_bf16(from + i);
      }
    }
#endif
    block.each(width, [=](std::int64_t i) {
      out[i] = ((partial[i] + partial[2 * width + i]) + (partial[width + i] + partial[3 * width + i])) / sum;
    });
  }
};

// The launch's grid: tokens on x, heads on y.
inline Grid grid(const Args& args) { return {args.tokens, args.heads, 1}; }

// Floats that a block keeps.
inline std::size_t scratch(const Args& args) { return static_cast<std::size_t>(args.most_keys + kKeySums * args.width); }

// Runs the kernel on the host. Returns why the launch is refused, or "".
template <class Decisions>
std::string launch_host(const Args& args, int threads) {
  return kernels::launch_host(grid(args), scratch(args), threads,
                              [&](const Block& block) { Body<Decisions>::run(args, block); });
}

}  // namespace kernels::dense_prefill
