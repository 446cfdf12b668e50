// dense_prefill: attention of a launch's new tokens over their request's rows of K and V. One block a token and head.
//
// K and V are not kept by head. A row of kv_c gives every head's: k_nope of head h is `nope` elements of it from h * nope
// on, v is `width` elements from kv_lora / 2 + h * width on, both going on at its start where it ends; k_pe is all heads'.
// The keys are the launch's own tokens, up to the query's own (causal), or the request's cached context, all of it.
//
// Scores and outputs are summed in 32 running sums, element d of a key (k_nope, then k_pe) in sum d % 32, key j of an
// output in sum j % 32, which a binary tree joins: the host's loops are over sums that do not depend on each other, the
// order is the same everywhere, and no term of n meets more than ceil(n / 32) - 1 + 5 additions. The weights' sum is
// Block::sum's, whose 128 sums are nowhere deeper: past 64 terms ceil(n / 128) - 1 + 7 is no more than that, and up to 64
// the tree's first steps only add sums that have no term.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "kernels/batch.cuh"
#include "kernels/block.cuh"
#include "kernels/math.cuh"

namespace kernels::dense_prefill {

inline constexpr int kSums = 32;              // running sums of a score, and of an element of an output
inline constexpr std::int64_t kColumns = 64;  // elements of an output that are summed at once, to bound a block's scratch

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
  static constexpr const char* source = "";
  static constexpr const char* reason = "";
  static constexpr const char* caught_by = "";

  // How many of its request's tokens the query of token `i` of the request sees.
  static DCPCHECK_HD std::int64_t causal_keys(std::int64_t i) { return i + 1; }
  // The request with whose context a query's ends, for a query of request `request`.
  static DCPCHECK_HD std::int64_t last_request(std::int64_t request) { return request; }
  // How many keys of the context it sees, of `keys`.
  static DCPCHECK_HD std::int64_t context_keys(std::int64_t keys, std::int64_t i) {
    (void)i;
    return keys;
  }
  // Which of all ranks' heads is this rank's first.
  static DCPCHECK_HD std::int64_t first_head(std::int64_t contract) { return contract; }
  static DCPCHECK_HD float scale(float contract) { return contract; }
  // How many elements of k_pe count.
  static DCPCHECK_HD std::int64_t rope(std::int64_t contract) { return contract; }
};

// Whether `Decisions` overrides any: a fault that does not, by a slip in a name, would be the right kernel.
template <class Decisions>
constexpr bool overrides_a_decision() {
  return !same_function<&Decisions::causal_keys, &Fixed::causal_keys> ||
         !same_function<&Decisions::last_request, &Fixed::last_request> || !same_function<&Decisions::scale, &Fixed::scale> ||
         !same_function<&Decisions::rope, &Fixed::rope> || !same_function<&Decisions::context_keys, &Fixed::context_keys> ||
         !same_function<&Decisions::first_head, &Fixed::first_head>;
}

namespace detail {

// Elements of a row of kv_c from `start` on, going on at its start.
struct Window {
  std::int64_t start = 0, size = 0, kv_lora = 0;

  DCPCHECK_HD bool wraps() const { return start + size > kv_lora; }
  DCPCHECK_HD std::int64_t at(std::int64_t i) const { return start + i < kv_lora ? start + i : (start + i) % kv_lora; }
};

DCPCHECK_HD inline Window window(std::int64_t start, std::int64_t size, std::int64_t kv_lora) {
  return {start % kv_lora, size, kv_lora};
}

// Whether a bf16 is subnormal. x86 multiplies those by microcode, 50 times slower than others, and memory that nobody wrote
// may be full of them: where a harness has filled it with 0x8061, say, so that all unwritten rows are one row.
inline bool is_subnormal(std::uint16_t code) { return (code & 0x7F80) == 0 && (code & 0x7F) != 0; }

inline bool same(const std::uint16_t* a, const std::uint16_t* b, std::int64_t n) {
  return n == 0 || std::memcmp(a, b, static_cast<std::size_t>(n) * sizeof(*a)) == 0;
}

// Whether every number is below 2^-100 by magnitude, as those are that come of queries that nobody wrote.
inline bool faint(const float* x, std::int64_t n) {
  std::uint32_t most = 0;
  for (std::int64_t i = 0; i < n; ++i) most |= dcpcheck::float_bits(x[i]) & 0x7FFFFFFFU;
  return most < dcpcheck::float_bits(0x1p-100F);  // all together are no less than the largest
}

// Whether every bf16 is finite and below 2^16 by magnitude.
inline bool modest(const std::uint16_t* codes, std::int64_t n) {
  std::int16_t most = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto magnitude = static_cast<std::int16_t>(codes[i] & 0x7FFF);
    most = magnitude > most ? magnitude : most;
  }
  return most < 0x4780;
}

// The next multiple of kSums, n where it is one.
DCPCHECK_HD inline std::int64_t padded(std::int64_t n) { return (n + kSums - 1) / kSums * kSums; }

// Adds the products of n elements, a multiple of kSums, to the sums: that of element i to sum i % kSums.
DCPCHECK_HD inline void add_products(float* __restrict sums, const float* q, const std::uint16_t* key, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kSums) {
    for (int s = 0; s < kSums; ++s) sums[s] = sums[s] + q[i + s] * load_bf16(key + i + s);
  }
}

// The binary tree over n sums, a power of two: sum s with sum s + n / 2, and so on.
template <int n>
DCPCHECK_HD float tree(const float* sums) {
  if constexpr (n == 1) {
    return sums[0];
  } else {
    float halves[n / 2];
    for (int s = 0; s < n / 2; ++s) halves[s] = sums[s] + sums[s + n / 2];
    return tree<n / 2>(halves);
  }
}

// A call on the host: where g++ has the sums in registers, it makes no SIMD of the tree.
#if !defined(__CUDACC__)
[[gnu::noinline]]
#endif
DCPCHECK_HD inline float
join(const float* sums) {
  return tree<kSums>(sums);
}

}  // namespace detail

// What one block does: head block.y of token block.x. Scratch: the query, a score a key, then
// kSums sums of up to kColumns elements of the output.
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
    float* const q = block.scratch;
    float* const scores = q + detail::padded(args.nope + args.rope);
    float* const partial = scores + args.most_keys;
    take_query(args, block, q);
    score(args, block, keys, q, scores);
    const float largest =
        block.max(-dcpcheck::float_of_bits(0x7F800000U), keys.count, [=](std::int64_t j) { return scores[j]; });
    block.each(keys.count, [=](std::int64_t j) { scores[j] = exp(scores[j] - largest); });
    const float sum = block.sum(keys.count, [=](std::int64_t j) { return scores[j]; });
    block.sync();  // scores are read by other threads than wrote them
    add_values(args, block, keys, scores, sum, partial, out);
    block.each(1, [=](std::int64_t) { store_fp32(lse, largest + log(sum)); });
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
      keys.count = Decisions::context_keys(keys.count, token - first);
    }
    keys.count = keys.count < args.most_keys ? keys.count : args.most_keys;  // only a fault has more
    return keys;
  }

  // The query as the sums take it: in whole turns of theirs, zeros after its last element. What those add changes no sum:
  // none is ever -0, as each begins with +0.
  static DCPCHECK_HD void take_query(const Args& args, const Block& block, float* q) {
    const std::int64_t elements = args.nope + Decisions::rope(args.rope);
    const float* const from = args.q + block.x * args.q_stride + block.y * (args.nope + args.rope);
    block.each(detail::padded(elements), [=](std::int64_t d) { q[d] = d < elements ? from[d] : 0.0F; });
    block.sync();
  }

  // One turn of a key that does not lie in memory as a whole: elements d and on, zeros after its last.
  static DCPCHECK_HD void put_together(std::uint16_t* out, const std::uint16_t* kv_c, const detail::Window& k, std::int64_t d,
                                       std::int64_t nope, const std::uint16_t* k_pe, std::int64_t elements) {
    std::int64_t s = 0;
    if (k.wraps()) {
      for (; s < kSums && d + s < nope; ++s) out[s] = kv_c[k.at(d + s)];
    } else {
      for (; s < kSums && d + s < nope; ++s) out[s] = kv_c[k.start + d + s];
    }
    for (; s < kSums && d + s < elements; ++s) out[s] = k_pe[d + s - nope];
    for (; s < kSums; ++s) out[s] = 0;
  }

  static DCPCHECK_HD void score(const Args& args, const Block& block, const Keys& keys, const float* q, float* scores) {
    const std::int64_t nope = args.nope, elements = nope + Decisions::rope(args.rope);
    const detail::Window k = detail::window((Decisions::first_head(args.first_head) + block.y) * nope, nope, args.kv_lora);
    const float scale = Decisions::scale(args.scale);
    const auto score_of = [=](const std::uint16_t* kv_c, const std::uint16_t* k_pe) {
      // Zeroed by halves: of the whole g++ makes a string instruction, which takes as long as half of the products.
      float sums[kSums];
      for (int s = 0; s < kSums / 2; ++s) sums[s] = 0.0F;
      for (int s = kSums / 2; s < kSums; ++s) sums[s] = 0.0F;
      std::int64_t d = 0;
      if (!k.wraps()) {
        d = nope / kSums * kSums;
        detail::add_products(sums, q, kv_c + k.start, d);
      }
      while (d < elements) {
        if (d >= nope && d + kSums <= elements) {
          const std::int64_t n = (elements - d) / kSums * kSums;
          detail::add_products(sums, q + d, k_pe + (d - nope), n);
          d += n;
        } else {
          std::uint16_t together[kSums];
          put_together(together, kv_c, k, d, nope, k_pe, elements);
          detail::add_products(sums, q + d, together, kSums);
          d += kSums;
        }
      }
      return detail::join(sums) * scale;
    };
    const std::uint16_t* const kv_c = args.kv_c + keys.first * args.kv_c_stride;
    const std::uint16_t* const k_pe = args.k_pe + keys.first * args.k_pe_stride;
#if defined(__CUDA_ARCH__)
    block.each(keys.count,
               [=](std::int64_t j) { scores[j] = score_of(kv_c + j * args.kv_c_stride, k_pe + j * args.k_pe_stride); });
#else
    // Where all scores are below 2^-59, each exponential of a difference of two of them is 1, and the logarithm of their
    // number, at least 2, swallows the largest: zeros come to the same bits. x86 would take long to work the true ones out.
    if (keys.count >= 2 && elements <= 16384 && scale < 1024.0F && scale > -1024.0F &&
        detail::faint(q, detail::padded(elements))) {
      bool all = true;
      for (std::int64_t j = 0; all && j < keys.count; ++j) {
        const std::uint16_t* const a = kv_c + j * args.kv_c_stride;
        all = detail::modest(k.wraps() ? a : a + k.start, k.wraps() ? args.kv_lora : nope) &&
              detail::modest(k_pe + j * args.k_pe_stride, elements - nope);
      }
      if (all) {
        for (std::int64_t j = 0; j < keys.count; ++j) scores[j] = 0.0F;
        return;
      }
    }
    // A key like the last one that began with a subnormal has its score.
    const std::uint16_t *last_kv_c = nullptr, *last_k_pe = nullptr;
    float last = 0.0F;
    const std::int64_t start = k.wraps() ? 0 : k.start, size = k.wraps() ? args.kv_lora : nope;
    for (std::int64_t j = 0; j < keys.count; ++j) {
      const std::uint16_t *const a = kv_c + j * args.kv_c_stride, *const b = k_pe + j * args.k_pe_stride;
      if (!detail::is_subnormal(nope > 0 ? a[k.start] : b[0])) {
        scores[j] = score_of(a, b);
        continue;
      }
      if (last_kv_c == nullptr || !detail::same(a + start, last_kv_c + start, size) ||
          !detail::same(b, last_k_pe, elements - nope)) {
        last = score_of(a, b);
        last_kv_c = a;
        last_k_pe = b;
      }
      scores[j] = last;
    }
#endif
  }

  // out = sum of the values weighed by `powers`, divided by `sum`.
  static DCPCHECK_HD void add_values(const Args& args, const Block& block, const Keys& keys, const float* powers, float sum,
                                     float* partial, float* out) {
    const std::int64_t start = args.kv_lora / 2 + (Decisions::first_head(args.first_head) + block.y) * args.width;
    for (std::int64_t first = 0; first < args.width; first += kColumns) {
      if (first > 0) block.sync();  // the columns before have been read by other threads than write these
      const std::int64_t columns = args.width - first < kColumns ? args.width - first : kColumns;
      add_columns(args, block, keys, powers, sum, detail::window(start + first, columns, args.kv_lora), partial, out + first);
    }
  }

  // The same for the values' columns in `v`, no more than kColumns.
  static DCPCHECK_HD void add_columns(const Args& args, const Block& block, const Keys& keys, const float* powers, float sum,
                                      const detail::Window& v, float* partial, float* out) {
    const std::int64_t columns = v.size;
    const std::uint16_t* const kv_c = args.kv_c + keys.first * args.kv_c_stride;
#if defined(__CUDA_ARCH__)
    block.each(kSums * columns, [&](std::int64_t at) {
      const std::int64_t column = v.at(at % columns);
      float total = 0.0F;
      for (std::int64_t j = at / columns; j < keys.count; j += kSums) {
        total = total + powers[j] * load_bf16(kv_c + j * args.kv_c_stride + column);
      }
      partial[at] = total;
    });
    block.sync();
    block.each(columns, [=](std::int64_t i) {
      float totals[kSums];
      for (int s = 0; s < kSums; ++s) totals[s] = partial[s * columns + i];
      store_fp32(out + i, detail::join(totals) / sum);
    });
#else
    // The same sums, a key at a time: along a row of kv_c they are neighbours. Where a row is one subnormal throughout, so are
    // its products one number, and that of the last such row where both factors are the same.
    float last_power = -1.0F, last = 0.0F;
    std::uint16_t last_code = 0;
    for (std::int64_t at = 0; at < kSums * columns; ++at) partial[at] = 0.0F;
    for (std::int64_t j = 0; j < keys.count; ++j) {
      const std::uint16_t* const row = kv_c + j * args.kv_c_stride;
      float* const totals = partial + j % kSums * columns;
      const float power = powers[j];
      if (v.wraps()) {
        for (std::int64_t i = 0; i < columns; ++i) totals[i] = totals[i] + power * load_bf16(row + v.at(i));
      } else if (detail::is_subnormal(row[v.start]) && detail::same(row + v.start, row + v.start + 1, columns - 1)) {
        if (power != last_power || row[v.start] != last_code) {
          last = power * load_bf16(row + v.start);
          last_power = power;
          last_code = row[v.start];
        }
        for (std::int64_t i = 0; i < columns; ++i) totals[i] = totals[i] + last;
      } else {
        const std::uint16_t* const from = row + v.start;
        KERNELS_INDEPENDENT
        for (std::int64_t i = 0; i < columns; ++i) totals[i] = totals[i] + power * load_bf16(from + i);
      }
    }
    for (std::int64_t half = kSums / 2 * columns; half >= columns; half /= 2) {
      KERNELS_INDEPENDENT
      for (std::int64_t at = 0; at < half; ++at) partial[at] = partial[at] + partial[half + at];
    }
    block.each(columns, [=](std::int64_t i) { store_fp32(out + i, partial[i] / sum); });
#endif
  }
};

// The launch's grid: tokens on x, heads on y.
inline Grid grid(const Args& args) { return {args.tokens, args.heads, 1}; }

// Floats that a block keeps.
inline std::size_t scratch(const Args& args) {
  return static_cast<std::size_t>(detail::padded(args.nope + args.rope) + args.most_keys +
                                  kSums * (args.width < kColumns ? args.width : kColumns));
}

// Runs the kernel on the host. Returns why the launch is refused, or "".
template <class Decisions>
std::string launch_host(const Args& args, int threads) {
  return kernels::launch_host(grid(args), scratch(args), threads,
                              [&](const Block& block) { Body<Decisions>::run(args, block); });
}

}  // namespace kernels::dense_prefill
