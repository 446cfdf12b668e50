#include "kernels/fused_q/fused_q.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/fused_q/faults/amax_over_half.hpp"
#include "kernels/fused_q/faults/exponent_by_frexp.hpp"
#include "kernels/fused_q/faults/exponent_floored.hpp"
#include "kernels/fused_q/faults/floor_missing.hpp"
#include "kernels/fused_q/faults/head_scale_left_out.hpp"
#include "kernels/fused_q/faults/heads_taken_as_dense.hpp"
#include "kernels/fused_q/faults/index_interleaved_always.hpp"
#include "kernels/fused_q/faults/index_pairs_as_q.hpp"
#include "kernels/fused_q/faults/position_one_too_low.hpp"
#include "kernels/fused_q/faults/q_pairing_swapped.hpp"
#include "kernels/fused_q/faults/q_scale_left_out.hpp"
#include "kernels/fused_q/faults/reciprocal_of_scale.hpp"
#include "kernels/fused_q/faults/rope_on_the_last_elements.hpp"
#include "kernels/fused_q/faults/rounded_before_quantisation.hpp"
#include "kernels/fused_q/faults/scale_no_power_of_two.hpp"
#include "kernels/fused_q/faults/scale_of_neighbour.hpp"

namespace kernels::fused_q {
namespace {

using Bf16s = std::vector<std::uint16_t>;
using Codes = std::vector<std::uint8_t>;
using Floats = std::vector<float>;

constexpr std::uint16_t kNaN = 0x7FC0;

struct Shape {
  std::int64_t tokens = 5, heads = 3, nope = 40, lead = 6, rope = 16, positions = 50;
  std::int64_t index_heads = 4, index = 48, index_rope = 12;
  bool fp8 = true, indexer = true, head_major = false, interleaved = true, index_interleaved = true;
  bool bf16_tables = false, bf16_weights = true, pre_quant_round = false, clamp_positions = false;
  Quantise quantise;
  std::int64_t gap = 0;  // elements between rows
  int threads = 1;
};

// What a launch left, dense, weights by their bits.
struct Result {
  Codes mqa_q, index_q;
  Bf16s q_pe;
  std::vector<std::uint32_t> weights;
  friend bool operator==(const Result&, const Result&) = default;
};

// `rows` rows of `width` elements, `gap` of `between` after each.
template <class T>
std::vector<T> spread(const std::vector<T>& dense, std::int64_t width, std::int64_t gap, T between) {
  std::vector<T> out;
  for (std::size_t i = 0; i < dense.size(); ++i) {
    out.push_back(dense[i]);
    if ((i + 1) % static_cast<std::size_t>(width) == 0) out.insert(out.end(), static_cast<std::size_t>(gap), between);
  }
  return out;
}

// Memory for rows of an output, and a look at what was left in it.
template <class T>
struct Out {
  std::int64_t rows, width, stride;
  T poison;
  std::vector<T> memory;

  Out(std::int64_t n, std::int64_t columns, std::int64_t gap, T filled)
      : rows(n),
        width(columns),
        stride(columns + gap),
        poison(filled),
        memory(static_cast<std::size_t>((n + 1) * stride), filled) {}
  OutRows<T> args() { return {memory.data(), stride}; }
  // The rows; nothing may lie around them.
  std::vector<T> dense() {
    std::vector<T> out;
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto row = memory.begin() + r * stride;
      out.insert(out.end(), row, row + width);
      std::fill(row, row + width, poison);
    }
    EXPECT_EQ(std::count(memory.begin(), memory.end(), poison), static_cast<std::ptrdiff_t>(memory.size()));
    return out;
  }
};

struct Trial {
  Shape shape;
  Bf16s q, ql_nope, index_q, weights_bf16, rope_bf16, index_rope_bf16;
  Floats weights, rope, index_rope;
  std::vector<std::int64_t> positions;
  float q_scale = 0.3F, softmax_scale = 0.0883883F, head_scale = 0.176777F;

  explicit Trial(const Shape& of, std::uint32_t seed = 1) : shape(of) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    const auto floats = [&](std::int64_t n, float sigma) {
      Floats out(static_cast<std::size_t>(n));
      for (float& value : out) value = sigma * normal(generator);
      return out;
    };
    const auto codes = [](const Floats& values) {
      Bf16s out;
      for (const float value : values) out.push_back(dcpcheck::encode_bf16(value));
      return out;
    };
    const std::int64_t t = shape.tokens;
    q = codes(floats(t * shape.heads * (shape.lead + shape.rope), 1));
    ql_nope = codes(floats(t * shape.heads * shape.nope, 2));
    index_q = codes(floats(t * shape.index_heads * shape.index, 1));
    weights = floats(t * shape.index_heads, 1);
    weights_bf16 = codes(weights);
    rope = floats(shape.positions * shape.rope, 0.7F);
    index_rope = floats(shape.positions * shape.index_rope, 0.7F);
    rope_bf16 = codes(rope);
    index_rope_bf16 = codes(index_rope);
    for (std::int64_t i = 0; i < t; ++i) positions.push_back((7 * i + 3) % std::max<std::int64_t>(shape.positions, 1));
  }

  template <class Decisions = Fixed>
  Result run() const {
    const Shape& s = shape;
    const std::int64_t q_width = s.heads * (s.lead + s.rope), nope_width = s.heads * s.nope;
    const std::int64_t index_width = s.index_heads * s.index;
    const Bf16s q_memory = spread(q, q_width, s.gap, kNaN), index_memory = spread(index_q, index_width, 2 * s.gap, kNaN);
    Bf16s by_head;
    for (std::int64_t h = 0; s.head_major && h < s.heads; ++h) {
      for (std::int64_t t = 0; t < s.tokens; ++t) {
        const auto row = ql_nope.begin() + (t * s.heads + h) * s.nope;
        by_head.insert(by_head.end(), row, row + s.nope);
      }
    }
    const Bf16s nope_memory =
        s.head_major ? spread(by_head, s.tokens * s.nope, s.gap, kNaN) : spread(ql_nope, nope_width, s.gap, kNaN);
    const Bf16s weights_bf16_memory = spread(weights_bf16, s.index_heads, s.gap, kNaN);
    const Floats weights_memory = spread(weights, s.index_heads, s.gap, std::numeric_limits<float>::quiet_NaN());
    Out<std::uint8_t> mqa(s.tokens, s.heads * (s.nope + s.rope), s.gap, 0xA5), index_out(s.tokens, index_width, s.gap, 0xA5);
    Out<std::uint16_t> q_pe(s.tokens, s.heads * s.rope, s.gap, 0xA5A5);
    Out<float> weights_out(s.tokens, s.index_heads, s.gap, -77);

    Args args;
    args.tokens = s.tokens;
    args.positions = positions.data();
    args.heads = s.heads;
    args.q_pe = {q_memory.data() + s.lead, q_width + s.gap, s.lead + s.rope};
    args.rope = {s.bf16_tables ? static_cast<const void*>(rope_bf16.data()) : rope.data(), s.rope, s.positions, s.bf16_tables,
                 s.interleaved};
    args.ql_nope = s.head_major ? HeadRows{nope_memory.data(), s.nope, s.tokens * s.nope + s.gap}
                                : HeadRows{nope_memory.data(), nope_width + s.gap, s.nope};
    args.nope = s.nope;
    args.q_scale = &q_scale;
    if (s.fp8) args.mqa_q = mqa.args();
    if (!s.fp8) args.q_pe_out = q_pe.args();
    if (s.indexer) {
      args.index_heads = s.index_heads;
      args.index_width = s.index;
      args.index_q = {index_memory.data(), index_width + 2 * s.gap, s.index};
      args.index_rope = {s.bf16_tables ? static_cast<const void*>(index_rope_bf16.data()) : index_rope.data(), s.index_rope,
                         s.positions, s.bf16_tables, s.index_interleaved};
      args.index_weights = s.bf16_weights ? static_cast<const void*>(weights_bf16_memory.data()) : weights_memory.data();
      args.index_weights_stride = s.index_heads + s.gap;
      args.index_weights_bf16 = s.bf16_weights;
      args.index_q_fp8 = index_out.args();
      args.index_weights_out = weights_out.args();
      args.softmax_scale = softmax_scale;
      args.head_scale = head_scale;
    }
    args.pre_quant_round = s.pre_quant_round;
    args.quantise = s.quantise;
    args.clamp_positions = s.clamp_positions;
    EXPECT_EQ(launch_host<Decisions>(args, s.threads), "");
    Result result{mqa.dense(), index_out.dense(), q_pe.dense(), {}};
    for (const float weight : weights_out.dense()) result.weights.push_back(std::bit_cast<std::uint32_t>(weight));
    return result;
  }

  // The expected values, in fp64 and from nothing but the inputs.
  std::vector<double> turned(const std::vector<double>& x, std::int64_t t, bool index) const {
    const std::int64_t width = index ? shape.index_rope : shape.rope;
    std::vector<double> out = x;
    const auto element = [&](std::int64_t i) -> double {
      const std::int64_t at = positions[t] * width + i;
      if (shape.bf16_tables) return dcpcheck::decode_bf16((index ? index_rope_bf16 : rope_bf16)[at]);
      return (index ? index_rope : rope)[at];
    };
    for (std::int64_t i = 0; i < width / 2; ++i) {
      const bool interleaved = index ? shape.index_interleaved : shape.interleaved;
      const std::int64_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + width / 2;
      const double cos = element(i), sin = element(width / 2 + i);
      out[a] = x[a] * cos - x[b] * sin;
      out[b] = x[a] * sin + x[b] * cos;
    }
    return out;
  }
  static std::vector<double> decoded(const Bf16s& codes, std::int64_t first, std::int64_t n) {
    std::vector<double> out;
    for (std::int64_t i = 0; i < n; ++i) out.push_back(dcpcheck::decode_bf16(codes[first + i]));
    return out;
  }
  std::vector<double> q_pe(std::int64_t t, std::int64_t head) const {
    const std::int64_t width = shape.lead + shape.rope;
    return turned(decoded(q, (t * shape.heads + head) * width + shape.lead, shape.rope), t, false);
  }
  std::vector<double> mqa(std::int64_t t, std::int64_t head) const {
    std::vector<double> out = decoded(ql_nope, (t * shape.heads + head) * shape.nope, shape.nope);
    const std::vector<double> pe = q_pe(t, head);
    out.insert(out.end(), pe.begin(), pe.end());
    return out;
  }
  std::vector<double> index(std::int64_t t, std::int64_t head) const {
    return turned(decoded(index_q, (t * shape.index_heads + head) * shape.index, shape.index), t, true);
  }
};

// Half a step of e4m3: of 2^-3 relative, or of 2^-9 below the normal codes; and what fp32 may lose where terms cancel.
void expect_e4m3(std::uint8_t got, double scale, double exact, const std::string& where) {
  const double bound = std::max(std::abs(exact) * 0x1.02p-4, scale * 0x1.02p-10) + 1e-5 * scale;
  EXPECT_NEAR(static_cast<double>(dcpcheck::decode_e4m3(got)) * scale, exact, bound) << where;
}

void expect_right(const Trial& trial) {
  const Shape& s = trial.shape;
  const Result got = trial.run();
  for (std::int64_t t = 0; t < s.tokens; ++t) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const std::string where = "token " + std::to_string(t) + " head " + std::to_string(h);
      const std::vector<double> mqa = trial.mqa(t, h), pe = trial.q_pe(t, h);
      const std::int64_t row = t * s.heads + h;
      for (std::size_t i = 0; s.fp8 && i < mqa.size(); ++i) {
        expect_e4m3(got.mqa_q[static_cast<std::size_t>(row) * mqa.size() + i], trial.q_scale, mqa[i], where);
      }
      for (std::size_t i = 0; !s.fp8 && i < pe.size(); ++i) {
        const double value = dcpcheck::decode_bf16(got.q_pe[static_cast<std::size_t>(row) * pe.size() + i]);
        EXPECT_NEAR(value, pe[i], std::abs(pe[i]) * 0x1.02p-8 + 1e-5) << where;
      }
    }
    for (std::int64_t h = 0; s.indexer && h < s.index_heads; ++h) {
      const std::string where = "token " + std::to_string(t) + " index head " + std::to_string(h);
      const std::vector<double> query = trial.index(t, h);
      double amax = 0;
      for (const double value : query) amax = std::max(amax, std::abs(value));
      const double scale = std::exp2(std::ceil(std::log2(std::max(amax, 1e-4) / 448)));
      const std::int64_t row = t * s.index_heads + h;
      for (std::int64_t i = 0; i < s.index; ++i) expect_e4m3(got.index_q[row * s.index + i], scale, query[i], where);
      const double w = s.bf16_weights ? dcpcheck::decode_bf16(trial.weights_bf16[row]) : trial.weights[row];
      const double weight = w * scale * static_cast<double>(trial.softmax_scale) * static_cast<double>(trial.head_scale);
      EXPECT_NEAR(std::bit_cast<float>(got.weights[row]), weight, std::abs(weight) * 2.01 * 0x1p-24) << where;
    }
  }
  // What was not asked for is left as it was.
  if (s.fp8) {
    EXPECT_EQ(std::count(got.q_pe.begin(), got.q_pe.end(), 0xA5A5), static_cast<std::ptrdiff_t>(got.q_pe.size()));
  } else {
    EXPECT_EQ(std::count(got.mqa_q.begin(), got.mqa_q.end(), 0xA5), static_cast<std::ptrdiff_t>(got.mqa_q.size()));
  }
}

TEST(FusedQ, ByHand) {
  Shape shape;
  shape.tokens = shape.heads = shape.index_heads = shape.positions = 1;
  shape.nope = shape.lead = 1;
  shape.rope = shape.index = shape.index_rope = 2;
  Trial trial(shape);
  trial.q = {kNaN, 0x4040, 0x4080};  // not to be read; 3, 4
  trial.ql_nope = {0x40A0};          // 5
  trial.rope = {0, 1};               // a quarter turn
  trial.index_q = {0xBF00, 0x4010};  // -0.5, 2.25
  trial.index_rope = {1, 0};         // none
  trial.weights_bf16 = {0x4040};     // 3
  trial.q_scale = 0.5F;
  trial.softmax_scale = 0.25F;
  trial.head_scale = 0.5F;
  const Result got = trial.run();
  EXPECT_EQ(dcpcheck::decode_e4m3(got.mqa_q[0]), 10);
  EXPECT_EQ(dcpcheck::decode_e4m3(got.mqa_q[1]), -8);
  EXPECT_EQ(dcpcheck::decode_e4m3(got.mqa_q[2]), 6);
  // amax 2.25: 2.25 / 448 lies just over 2^-8, so the scale is 2^-7, and the codes are those of -64 and 288.
  EXPECT_EQ(dcpcheck::decode_e4m3(got.index_q[0]), -64);
  EXPECT_EQ(dcpcheck::decode_e4m3(got.index_q[1]), 288);
  EXPECT_EQ(std::bit_cast<float>(got.weights[0]), 3 * 0x1p-7F / 8);
  trial.shape.fp8 = false;
  const Result bf16 = trial.run();
  EXPECT_EQ(bf16.q_pe, (Bf16s{0xC080, 0x4040}));  // -4, 3
}

TEST(FusedQ, EveryPathAndRope) {
  for (int bits = 0; bits < 128; ++bits) {
    Shape shape;
    shape.fp8 = (bits & 1) != 0;
    shape.indexer = (bits & 2) != 0;
    shape.head_major = (bits & 4) != 0;
    shape.interleaved = (bits & 8) != 0;
    shape.index_interleaved = (bits & 16) != 0;
    shape.bf16_tables = (bits & 32) != 0;
    shape.bf16_weights = (bits & 64) != 0;
    SCOPED_TRACE(bits);
    expect_right(Trial(shape));
  }
}

TEST(FusedQ, OddWidthsAndNoRope) {
  for (const std::int64_t width : {1, 2, 127, 128, 129, 1536}) {
    for (const std::int64_t rope : {0, 2, 64}) {
      Shape shape;
      shape.nope = shape.index = width;
      shape.rope = rope;
      shape.index_rope = std::min(rope, width / 2 * 2);
      SCOPED_TRACE(std::to_string(width) + " " + std::to_string(rope));
      expect_right(Trial(shape));
    }
  }
}

TEST(FusedQ, LayoutStridesAndThreadsChangeNoBit) {
  for (const bool fp8 : {true, false}) {
    Shape shape;
    shape.tokens = 70;
    shape.fp8 = fp8;
    const Result plain = Trial(shape).run();
    Shape by_head = shape, strided = shape, threaded = shape;
    by_head.head_major = true;
    strided.gap = 5;
    threaded.threads = 5;
    EXPECT_EQ(Trial(by_head).run(), plain);
    EXPECT_EQ(Trial(strided).run(), plain);
    EXPECT_EQ(Trial(threaded).run(), plain);
    by_head.gap = 3;
    EXPECT_EQ(Trial(by_head).run(), plain);
  }
}

TEST(FusedQ, NoTokensAndTooMany) {
  Shape shape;
  shape.tokens = 0;
  EXPECT_TRUE(Trial(shape).run().mqa_q.empty());
  std::uint16_t out = 0;
  Args args;
  args.heads = 1;
  args.q_pe_out.data = &out;
  args.tokens = std::int64_t{1} << 31;
  EXPECT_NE(launch_host<Fixed>(args, 1), "");
}

TEST(FusedQ, NothingAskedForIsNothingDone) {
  Args args;
  args.tokens = 7;
  args.heads = 3;
  EXPECT_EQ(launch_host<Fixed>(args, 1), "");
}

TEST(FusedQ, PositionsOutsideTheTableAreClampedWhereTheContractAllowsThem) {
  Shape shape;
  shape.clamp_positions = true;
  Trial trial(shape);
  Trial inside = trial;
  trial.positions[1] = shape.positions + 1000;
  inside.positions[1] = shape.positions - 1;
  trial.positions[2] = -5;
  inside.positions[2] = 0;
  EXPECT_EQ(trial.run(), inside.run());
  expect_right(inside);
}

TEST(FusedQ, RoundsBeforeQuantisationWhereAsked) {
  Shape shape;
  shape.tokens = 40;
  const Trial trial(shape);
  shape.pre_quant_round = true;
  const Result plain = trial.run(), rounded = Trial(shape).run();
  EXPECT_NE(rounded.mqa_q, plain.mqa_q);
  EXPECT_NE(rounded.index_q, plain.index_q);
  EXPECT_EQ(rounded.q_pe, plain.q_pe);
  // What is not turned is bf16 already.
  for (std::size_t i = 0; i < plain.mqa_q.size(); ++i) {
    if (static_cast<std::int64_t>(i) % (shape.nope + shape.rope) < shape.nope) {
      ASSERT_EQ(rounded.mqa_q[i], plain.mqa_q[i]);
    }
  }
}

TEST(FusedQ, OverflowNaNAndInfinityFollowTheContract) {
  for (const bool saturate : {true, false}) {
    for (const bool clamp : {true, false}) {
      Shape shape;
      shape.quantise = Quantise(saturate, clamp);
      shape.index_rope = 0;
      Trial trial(shape);
      trial.ql_nope[0] = 0x447A;  // 1000
      trial.ql_nope[1] = kNaN;
      trial.index_q[0] = kNaN;                                        // of head 0
      trial.index_q[static_cast<std::size_t>(shape.index)] = 0xFF80;  // -inf, of head 1
      trial.weights_bf16[2] = 0xFFC1;                                 // a NaN
      const Result got = trial.run();
      EXPECT_EQ(got.mqa_q[0], saturate ? 0x7E : 0x7F);
      EXPECT_EQ(got.mqa_q[1], clamp ? 0x7E : 0x7F);
      EXPECT_EQ(got.index_q[0], clamp ? 0x7E : 0x7F);
      EXPECT_NE(got.index_q[1] & 0x7F, 0x7F);                                              // the scale comes of the others
      EXPECT_EQ(got.index_q[static_cast<std::size_t>(shape.index)], clamp ? 0x7E : 0x7F);  // inf / inf
      EXPECT_EQ(got.index_q[static_cast<std::size_t>(shape.index) + 1] & 0x7F, 0);
      EXPECT_EQ(got.weights[1] & 0x7FFFFFFF, 0x7F800000U);
      EXPECT_EQ(got.weights[2], 0x7FC00000U);
    }
  }
}

TEST(FusedQ, ZerosAndTinyOnesAreScaledByTheFloor) {
  Shape shape;
  Trial trial(shape);
  std::fill(trial.index_q.begin(), trial.index_q.end(), std::uint16_t{0});
  trial.index_q[static_cast<std::size_t>(shape.index) + 40] = 0x3580;  // 2^-20: 2^2 times the scale
  trial.weights_bf16.assign(trial.weights_bf16.size(), 0x3F80);
  trial.softmax_scale = trial.head_scale = 1;
  const Result got = trial.run();
  for (const std::uint32_t weight : got.weights) EXPECT_EQ(std::bit_cast<float>(weight), 0x1p-22F);
  EXPECT_EQ(dcpcheck::decode_e4m3(got.index_q[static_cast<std::size_t>(shape.index) + 40]), 4);
  EXPECT_EQ(std::count_if(got.index_q.begin(), got.index_q.end(), [](std::uint8_t code) { return (code & 0x7F) != 0; }), 1);
}

// ---- faults ------------------------------------------------------------------------------------------------------

// Which outputs a fault changes: some of "m", "q", "i", "w".
template <class Fault>
std::string changed(const Trial& trial) {
  const Result right = trial.run(), got = trial.run<Fault>();
  std::string out;
  if (got.mqa_q != right.mqa_q) out += "m";
  if (got.q_pe != right.q_pe) out += "q";
  if (got.index_q != right.index_q) out += "i";
  if (got.weights != right.weights) out += "w";
  return out;
}

TEST(FusedQFaults, DifferWhereTheyShould) {
  Shape shape;
  shape.tokens = 30;
  const Trial plain(shape);
  EXPECT_EQ(changed<faults::q_pairing_swapped>(plain), "m");
  EXPECT_EQ(changed<faults::index_interleaved_always>(plain), "");
  EXPECT_EQ(changed<faults::index_pairs_as_q>(plain), "");
  EXPECT_EQ(changed<faults::rope_on_the_last_elements>(plain), "iw");
  EXPECT_EQ(changed<faults::position_one_too_low>(plain), "miw");
  EXPECT_EQ(changed<faults::heads_taken_as_dense>(plain), "m");  // q_pe lies behind what comes before it in each head
  EXPECT_EQ(changed<faults::rounded_before_quantisation>(plain), "mi");
  EXPECT_EQ(changed<faults::q_scale_left_out>(plain), "m");
  EXPECT_EQ(changed<faults::reciprocal_of_scale>(plain), "");
  EXPECT_EQ(changed<faults::amax_over_half>(plain), "iw");
  EXPECT_EQ(changed<faults::floor_missing>(plain), "");
  EXPECT_EQ(changed<faults::exponent_floored>(plain), "iw");
  EXPECT_EQ(changed<faults::scale_no_power_of_two>(plain), "iw");
  EXPECT_EQ(changed<faults::scale_of_neighbour>(plain), "w");
  EXPECT_EQ(changed<faults::head_scale_left_out>(plain), "w");

  Shape other = shape;
  other.index_interleaved = false;
  EXPECT_EQ(changed<faults::index_interleaved_always>(Trial(other)), "iw");
  EXPECT_EQ(changed<faults::index_pairs_as_q>(Trial(other)), "iw");
  other.interleaved = false;
  EXPECT_EQ(changed<faults::index_pairs_as_q>(Trial(other)), "");
  Shape by_head = shape;
  by_head.lead = 0;
  EXPECT_EQ(changed<faults::heads_taken_as_dense>(Trial(by_head)), "");
  by_head.head_major = true;
  EXPECT_EQ(changed<faults::heads_taken_as_dense>(Trial(by_head)), "m");
  Shape bf16 = shape;
  bf16.fp8 = false;
  EXPECT_EQ(changed<faults::q_pairing_swapped>(Trial(bf16)), "q");
  EXPECT_EQ(changed<faults::q_scale_left_out>(Trial(bf16)), "");
}

TEST(FusedQFaults, NeedTheirNumbers) {
  Trial trial{Shape{}};
  trial.q_scale = 7.0F / 32;
  trial.ql_nope[0] = dcpcheck::encode_bf16(trial.q_scale * 25 / 16);  // half way between 1.5 and 1.625
  EXPECT_EQ(dcpcheck::decode_e4m3(trial.run().mqa_q[0]), 1.5F);
  EXPECT_EQ(dcpcheck::decode_e4m3(trial.run<faults::reciprocal_of_scale>().mqa_q[0]), 1.625F);

  Shape shape;
  shape.index_rope = 0;
  Trial zeros(shape);
  std::fill_n(zeros.index_q.begin(), shape.index, std::uint16_t{0});
  EXPECT_EQ(zeros.run<faults::floor_missing>().index_q[0], 0x7F);
  EXPECT_EQ(zeros.run().index_q[0], 0);

  Trial critical(shape);
  std::fill_n(critical.index_q.begin(), shape.index, std::uint16_t{0x43E0});  // 448: a scale of 1
  EXPECT_EQ(dcpcheck::decode_e4m3(critical.run().index_q[0]), 448);
  EXPECT_EQ(dcpcheck::decode_e4m3(critical.run<faults::exponent_by_frexp>().index_q[0]), 224);
  EXPECT_EQ(critical.run<faults::exponent_floored>().index_q[0], critical.run().index_q[0]);
}

}  // namespace
}  // namespace kernels::fused_q
