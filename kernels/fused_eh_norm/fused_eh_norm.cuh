// fused_eh_norm: the RMSNorm of each token's embedding, of zeros at position 0, beside that of the previous layer's hidden
// state. One block a token and half of the output.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/block.cuh"
#include "kernels/math.cuh"
#include "kernels/rms_norm.cuh"

namespace kernels::fused_eh_norm {

// The input of one half of the output: its rows, bf16, start at data + r * stride.
struct Half {
  const std::uint16_t* data = nullptr;
  std::int64_t stride = 0;
  const std::uint16_t* weight = nullptr;  // bf16
  float eps = 0;
};

// A launch's parameters. Strides count elements.
struct Args {
  std::int64_t tokens = 0;                  // rows of the launch, padding counted in
  std::int64_t width = 0;                   // of a half
  const std::int64_t* positions = nullptr;  // [tokens]
  Half embeds, hidden;
  std::uint16_t* out = nullptr;  // [tokens, 2 * width], bf16
  std::int64_t out_stride = 0;
  bool norm_round = false;  // round a normalised value to bf16 before it is multiplied by the weight
};

// Grid y: the halves, as they lie in a row of the output.
enum Part : std::int64_t { kEmbeds = 0, kHidden = 1, kParts = 2 };

// The decisions of the kernel as it should be. A fault overrides one of them.
struct Fixed {
  static constexpr const char* name = "";
  static constexpr const char* doc = "";
  static constexpr const char* source = "";
  static constexpr const char* reason = "";
  static constexpr const char* caught_by = "";

  // Whether a token's embedding counts as zeros.
  static DCPCHECK_HD bool is_zeroed(std::int64_t position, std::int64_t token) {
    (void)token;
    return position == 0;
  }
  // An element of an embedding. Chosen, not multiplied: whatever it is, NaN too, it counts for nothing.
  static DCPCHECK_HD float masked(float value, bool zeroed) { return zeroed ? 0.0F : value; }
  // The half of the output that a part is written to, and the part whose weight it is multiplied by.
  static DCPCHECK_HD std::int64_t half_of(std::int64_t part) { return part; }
  static DCPCHECK_HD std::int64_t weight_of(std::int64_t part) { return part; }
  // How many elements of a row are summed, and what their sum is divided by.
  static DCPCHECK_HD std::int64_t summed(std::int64_t width) { return width; }
  static DCPCHECK_HD std::int64_t divisor(std::int64_t width) { return width; }
  static DCPCHECK_HD float rstd(float mean_square, float eps) { return rsqrt(mean_square + eps); }
  // How far rows are apart where their elements are read once more, to be normed.
  static DCPCHECK_HD std::int64_t second_stride(std::int64_t stride, std::int64_t width) {
    (void)width;
    return stride;
  }
};

// Whether `Decisions` overrides any: a fault that does not, by a slip in a name, would be the right kernel.
template <class Decisions>
constexpr bool overrides_a_decision() {
  return !same_function<&Decisions::is_zeroed, &Fixed::is_zeroed> || !same_function<&Decisions::masked, &Fixed::masked> ||
         !same_function<&Decisions::half_of, &Fixed::half_of> || !same_function<&Decisions::weight_of, &Fixed::weight_of> ||
         !same_function<&Decisions::summed, &Fixed::summed> || !same_function<&Decisions::divisor, &Fixed::divisor> ||
         !same_function<&Decisions::rstd, &Fixed::rstd> || !same_function<&Decisions::second_stride, &Fixed::second_stride>;
}

// What one block does: part block.y of token block.x.
template <class Decisions>
struct Body {
  static DCPCHECK_HD void run(const Args& args, const Block& block) {
    if (args.norm_round) {
      norm<true>(args, block);
    } else {
      norm<false>(args, block);
    }
  }

 private:
  static DCPCHECK_HD const Half& half(const Args& args, std::int64_t part) {
    return part == kEmbeds ? args.embeds : args.hidden;
  }

  template <bool Rounded>
  static DCPCHECK_HD void norm(const Args& args, const Block& block) {
    const std::int64_t token = block.x;
    const std::int64_t part = block.y;
    const Half& in = half(args, part);
    const bool zeroed = part == kEmbeds && Decisions::is_zeroed(args.positions[token], token);
    const std::uint16_t* const x = in.data + token * in.stride;
    const float squares = sum_of_squares(block, Decisions::summed(args.width),
                                         [=](std::int64_t i) { return Decisions::masked(load_bf16(x + i), zeroed); });
    const float rstd = Decisions::rstd(squares / static_cast<float>(Decisions::divisor(args.width)), in.eps);
    const std::uint16_t* const again = in.data + token * Decisions::second_stride(in.stride, args.width);
    const std::uint16_t* const weight = half(args, Decisions::weight_of(part)).weight;
    std::uint16_t* const out = args.out + token * args.out_stride + Decisions::half_of(part) * args.width;
    block.each(args.width, [=](std::int64_t i) {
      store_bf16(out + i, normed<Rounded>(Decisions::masked(load_bf16(again + i), zeroed), rstd, load_bf16(weight + i)));
    });
  }
};

// The launch's grid: tokens on x, parts on y.
inline Grid grid(const Args& args) { return {args.tokens, kParts, 1}; }

// Runs the kernel on the host. Returns why the launch is refused, or "".
template <class Decisions>
std::string launch_host(const Args& args, int threads) {
  return kernels::launch_host(grid(args), 0, threads, [&](const Block& block) { Body<Decisions>::run(args, block); });
}

}  // namespace kernels::fused_eh_norm
