// fused_q: the queries of one rank's attention heads, in e4m3 by a given scale or only their roped part in bf16; and the
// indexer's queries in e4m3, each head by a UE8M0 scale of its own, which goes into the weight of the head. One block a
// token and head.
//
// No slots: who owns a token's cache row does not matter to its queries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/block.cuh"
#include "kernels/math.cuh"
#include "kernels/rope.cuh"

namespace kernels::fused_q {

// Rows by token and head: that of head h of token t starts at data + t * token_stride + h * head_stride. Elements are bf16.
struct HeadRows {
  const std::uint16_t* data = nullptr;
  std::int64_t token_stride = 0, head_stride = 0;

  DCPCHECK_HD const std::uint16_t* row(std::int64_t token, std::int64_t head) const {
    return data + token * token_stride + head * head_stride;
  }
};

// The rows of a matrix, a row a token: row t starts at data + t * stride.
template <class T>
struct OutRows {
  T* data = nullptr;  // nullptr: not asked for
  std::int64_t stride = 0;

  DCPCHECK_HD T* row(std::int64_t token) const { return data + token * stride; }
};

// A launch's parameters. Strides count elements.
struct Args {
  std::int64_t tokens = 0;                  // rows of the launch, padding counted in
  const std::int64_t* positions = nullptr;  // [tokens]

  // Attention heads. mqa_q: [tokens, heads, nope + rope.width], e4m3; q_pe_out: [tokens, heads, rope.width], bf16.
  std::int64_t heads = 0;
  HeadRows q_pe;
  RopeTable rope;
  HeadRows ql_nope;
  std::int64_t nope = 0;  // width of ql_nope
  const float* q_scale = nullptr;
  OutRows<std::uint8_t> mqa_q;
  OutRows<std::uint16_t> q_pe_out;

  // The indexer's: [tokens, index_heads, index_width], and [tokens, index_heads] weights.
  std::int64_t index_heads = 0;  // 0: no indexer
  std::int64_t index_width = 0;
  HeadRows index_q;
  RopeTable index_rope;
  const void* index_weights = nullptr;
  std::int64_t index_weights_stride = 0;
  bool index_weights_bf16 = false;  // else fp32
  OutRows<std::uint8_t> index_q_fp8;
  OutRows<float> index_weights_out;
  float softmax_scale = 1, head_scale = 1;

  bool pre_quant_round = false;  // round a value to bf16 before it is quantised, and before its scale is taken
  Quantise quantise;
  bool clamp_positions = false;  // a padding token's position may lie outside the rope tables
};

// The decisions of the kernel as it should be. A fault overrides one of them.
struct Fixed {
  static constexpr const char* name = "";
  static constexpr const char* doc = "";
  static constexpr const char* source = "";
  static constexpr const char* reason = "";
  static constexpr const char* caught_by = "";

  // How pairs lie in q_pe and in index_q, by what the contract says of each.
  static DCPCHECK_HD bool q_interleaved(bool q) { return q; }
  static DCPCHECK_HD bool index_interleaved(bool index, bool q) {
    (void)q;
    return index;
  }
  // The first element of a head's index_q that is rotated.
  static DCPCHECK_HD std::int64_t index_rope_start(std::int64_t width, std::int64_t rope) {
    (void)width;
    (void)rope;
    return 0;
  }
  // The row of the rope tables for a token.
  static DCPCHECK_HD std::int64_t position(std::int64_t token_position) { return token_position; }
  // Where the rows of q_pe and ql_nope lie.
  static DCPCHECK_HD HeadRows laid_out(const HeadRows& rows, std::int64_t heads, std::int64_t width) {
    (void)heads;
    (void)width;
    return rows;
  }
  // Whether a value is rounded to bf16 before it is quantised.
  static DCPCHECK_HD bool rounds(bool contract) { return contract; }
  // What mqa_q is divided by, and how.
  static DCPCHECK_HD float divisor(float q_scale) { return q_scale; }
  static DCPCHECK_HD float quotient(float value, float divisor) { return value / divisor; }
  // How many elements of an index head its largest magnitude is taken of, what that is at the least, and the scale for
  // what it comes to divided by 448.
  static DCPCHECK_HD std::int64_t amax_width(std::int64_t width) { return width; }
  static DCPCHECK_HD float least_amax() { return 1e-4F; }
  static DCPCHECK_HD float scale(float quotient) { return next_pow2(quotient); }
  // The head whose weight the scale of `head` goes into, and the last factor of a weight.
  static DCPCHECK_HD std::int64_t weighed_head(std::int64_t head, std::int64_t heads) {
    (void)heads;
    return head;
  }
  static DCPCHECK_HD float head_factor(float head_scale) { return head_scale; }
};

// Whether `Decisions` overrides any: a fault that does not, by a slip in a name, would be the right kernel.
template <class Decisions>
constexpr bool overrides_a_decision() {
  return !same_function<&Decisions::q_interleaved, &Fixed::q_interleaved> ||
         !same_function<&Decisions::index_interleaved, &Fixed::index_interleaved> ||
         !same_function<&Decisions::index_rope_start, &Fixed::index_rope_start> ||
         !same_function<&Decisions::position, &Fixed::position> || !same_function<&Decisions::laid_out, &Fixed::laid_out> ||
         !same_function<&Decisions::rounds, &Fixed::rounds> || !same_function<&Decisions::divisor, &Fixed::divisor> ||
         !same_function<&Decisions::quotient, &Fixed::quotient> || !same_function<&Decisions::amax_width, &Fixed::amax_width> ||
         !same_function<&Decisions::least_amax, &Fixed::least_amax> || !same_function<&Decisions::scale, &Fixed::scale> ||
         !same_function<&Decisions::weighed_head, &Fixed::weighed_head> ||
         !same_function<&Decisions::head_factor, &Fixed::head_factor>;
}

namespace detail {

// Blocks of a token that are attention heads; the indexer's heads follow them.
DCPCHECK_HD inline std::int64_t attention_heads(const Args& args) {
  return args.mqa_q.data != nullptr || args.q_pe_out.data != nullptr ? args.heads : 0;
}

}  // namespace detail

// What one block does: head block.y of token block.x.
template <class Decisions>
struct Body {
  static DCPCHECK_HD void run(const Args& args, const Block& block) {
    const std::int64_t heads = detail::attention_heads(args);
    if (block.y < heads) {
      attention(args, block, block.x, block.y);
    } else {
      index(args, block, block.x, block.y - heads);
    }
  }

 private:
  static DCPCHECK_HD RopeRow rope_of(const Args& args, const RopeTable& table, std::int64_t token) {
    return rope_row(table, Decisions::position(args.positions[token]), args.clamp_positions);
  }

  static DCPCHECK_HD void attention(const Args& args, const Block& block, std::int64_t token, std::int64_t head) {
    const Quantise quantise = args.quantise;
    std::uint8_t* codes = nullptr;
    float divisor = 1.0F;
    if (args.mqa_q.data != nullptr) {
      codes = args.mqa_q.row(token) + head * (args.nope + args.rope.width);
      divisor = Decisions::divisor(*args.q_scale);
      const std::uint16_t* const x = Decisions::laid_out(args.ql_nope, args.heads, args.nope).row(token, head);
      block.each(args.nope, [=](std::int64_t i) { codes[i] = quantise(Decisions::quotient(load_bf16(x + i), divisor)); });
      codes += args.nope;
    }
    if (args.rope.width == 0) return;
    std::uint16_t* const out = args.q_pe_out.data != nullptr ? args.q_pe_out.row(token) + head * args.rope.width : nullptr;
    RopeRow rope = rope_of(args, args.rope, token);
    rope.interleaved = Decisions::q_interleaved(rope.interleaved);
    const std::uint16_t* const x = Decisions::laid_out(args.q_pe, args.heads, args.rope.width).row(token, head);
    const bool round = Decisions::rounds(args.pre_quant_round);
    block.each(rope.half, [=](std::int64_t i) {
      const std::int64_t at0 = rope.first(i);
      const std::int64_t at1 = rope.second(i);
      const Pair turned = rotate({load_bf16(x + at0), load_bf16(x + at1)}, rope.element(i), rope.element(rope.half + i));
      if (out != nullptr) {
        store_bf16(out + at0, turned.first);
        store_bf16(out + at1, turned.second);
      }
      if (codes != nullptr) {
        codes[at0] = quantise(Decisions::quotient(round_bf16_if(round, turned.first), divisor));
        codes[at1] = quantise(Decisions::quotient(round_bf16_if(round, turned.second), divisor));
      }
    });
  }

  static DCPCHECK_HD void index(const Args& args, const Block& block, std::int64_t token, std::int64_t head) {
    const std::int64_t width = args.index_width;
    const std::uint16_t* const x = args.index_q.row(token, head);
    float* const query = block.scratch;
    block.each(width, [=](std::int64_t i) { query[i] = load_bf16(x + i); });
    if (args.index_rope.width > 0) {
      block.sync();  // a pair's two elements are other threads' than theirs in the loop before, and in the one after
      RopeRow rope = rope_of(args, args.index_rope, token);
      rope.interleaved = Decisions::index_interleaved(rope.interleaved, args.rope.interleaved);
      float* const rotated = query + Decisions::index_rope_start(width, args.index_rope.width);
      block.each(rope.half, [=](std::int64_t i) {
        const std::int64_t at0 = rope.first(i);
        const std::int64_t at1 = rope.second(i);
        const Pair turned = rotate({rotated[at0], rotated[at1]}, rope.element(i), rope.element(rope.half + i));
        rotated[at0] = turned.first;
        rotated[at1] = turned.second;
      });
      block.sync();
    }
    if (Decisions::rounds(args.pre_quant_round)) block.each(width, [=](std::int64_t i) { query[i] = round_bf16(query[i]); });
    const float amax = block.max(0.0F, Decisions::amax_width(width), [=](std::int64_t i) { return magnitude(query[i]); });
    const float scale = Decisions::scale(larger(amax, Decisions::least_amax()) / kE4m3Max);
    std::uint8_t* const codes = args.index_q_fp8.row(token) + head * width;
    const Quantise quantise = args.quantise;
    block.each(width, [=](std::int64_t i) { codes[i] = quantise(query[i] / scale); });

    const std::int64_t weighed = Decisions::weighed_head(head, args.index_heads);
    const std::int64_t at = token * args.index_weights_stride + weighed;
    const float weight = args.index_weights_bf16 ? load_bf16(static_cast<const std::uint16_t*>(args.index_weights) + at)
                                                 : static_cast<const float*>(args.index_weights)[at];
    float* const out = args.index_weights_out.row(token) + weighed;
    const float product = ((weight * scale) * args.softmax_scale) * Decisions::head_factor(args.head_scale);
    block.each(1, [=](std::int64_t) { store_fp32(out, product); });
  }
};

// The launch's grid: tokens on x, heads on y.
inline Grid grid(const Args& args) { return {args.tokens, detail::attention_heads(args) + args.index_heads, 1}; }

// Floats that a block keeps of a row: an index head.
inline std::size_t scratch(const Args& args) { return static_cast<std::size_t>(args.index_heads > 0 ? args.index_width : 0); }

// Runs the kernel on the host. Returns why the launch is refused, or "".
template <class Decisions>
std::string launch_host(const Args& args, int threads) {
  return kernels::launch_host(grid(args), scratch(args), threads,
                              [&](const Block& block) { Body<Decisions>::run(args, block); });
}

}  // namespace kernels::fused_q
