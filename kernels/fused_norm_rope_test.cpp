#include "kernels/fused_norm_rope/fused_norm_rope.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/fused_norm_rope/faults/amax_over_half.hpp"
#include "kernels/fused_norm_rope/faults/block_size_of_stride.hpp"
#include "kernels/fused_norm_rope/faults/cache_unguarded.hpp"
#include "kernels/fused_norm_rope/faults/e4m3_max_447.hpp"
#include "kernels/fused_norm_rope/faults/eps_left_out.hpp"
#include "kernels/fused_norm_rope/faults/eps_of_q.hpp"
#include "kernels/fused_norm_rope/faults/eps_outside_the_root.hpp"
#include "kernels/fused_norm_rope/faults/exponent_by_frexp.hpp"
#include "kernels/fused_norm_rope/faults/exponent_floored.hpp"
#include "kernels/fused_norm_rope/faults/floor_missing.hpp"
#include "kernels/fused_norm_rope/faults/index_interleaved_always.hpp"
#include "kernels/fused_norm_rope/faults/index_k_gated.hpp"
#include "kernels/fused_norm_rope/faults/index_pairs_as_k_pe.hpp"
#include "kernels/fused_norm_rope/faults/index_scale_floored.hpp"
#include "kernels/fused_norm_rope/faults/index_weight_in_bf16.hpp"
#include "kernels/fused_norm_rope/faults/indexer_rows_interleaved.hpp"
#include "kernels/fused_norm_rope/faults/k_gated.hpp"
#include "kernels/fused_norm_rope/faults/k_pe_pairing_swapped.hpp"
#include "kernels/fused_norm_rope/faults/last_element_dropped.hpp"
#include "kernels/fused_norm_rope/faults/last_slot_for_negative.hpp"
#include "kernels/fused_norm_rope/faults/late_tokens_unwritten.hpp"
#include "kernels/fused_norm_rope/faults/mean_over_one_more.hpp"
#include "kernels/fused_norm_rope/faults/outputs_before_the_cache.hpp"
#include "kernels/fused_norm_rope/faults/position_in_bf16.hpp"
#include "kernels/fused_norm_rope/faults/position_one_too_low.hpp"
#include "kernels/fused_norm_rope/faults/positions_stale_past_256.hpp"
#include "kernels/fused_norm_rope/faults/q_gated.hpp"
#include "kernels/fused_norm_rope/faults/reciprocal_of_scale.hpp"
#include "kernels/fused_norm_rope/faults/rounded_before_the_weight.hpp"
#include "kernels/fused_norm_rope/faults/scale_of_neighbour_tile.hpp"
#include "kernels/fused_norm_rope/faults/slot_maps_swapped.hpp"
#include "kernels/fused_norm_rope/faults/tile_amax_floored.hpp"
#include "kernels/fused_norm_rope/faults/tokens_on_grid_y.hpp"
#include "kernels/fused_norm_rope/faults/topk_tail_unfilled.hpp"
#include "kernels/fused_norm_rope/faults/truncated_stores.hpp"
#include "kernels/fused_norm_rope/faults/variance_over_one_less.hpp"
#include "kernels/fused_norm_rope/faults/variance_over_padded_lanes.hpp"
#include "kernels/fused_norm_rope/faults/weight_one_off.hpp"

namespace kernels::fused_norm_rope {
namespace {

using Codes = std::vector<std::uint16_t>;
using Bytes = std::vector<std::byte>;

constexpr std::uint16_t kPoison = 0xA5A5;
constexpr std::byte kPoisonByte{0xA5};

// What a launch left behind. Outputs are dense again here, whatever their stride was; `around` holds all that lay
// between and after their rows.
struct Result {
  Codes q_c_out, kv_c_out, k_pe_out, index_k_out;
  std::vector<std::int32_t> topk;
  Bytes mla, indexer;  // from one block below the cache to one above it
  Codes around;
  std::string refused;
  friend bool operator==(const Result&, const Result&) = default;
};

struct Shape {
  std::int64_t tokens = 9, q = 200, kv = 96, rope = 16, index = 40, index_rope = 12, topk = 33;
  std::int64_t positions = 50, mla_block = 4, index_block = 8, blocks = 4, block_padding = 16;
  MlaLayout layout = MlaLayout::bf16;
  TileScale tile_scale = TileScale::fp32_div;
  bool indexer = true, kv_c_out = true, k_pe_out = true, index_k_out = true, mapped = true;
  bool interleaved = true, bf16_tables = false, in_place = false;
  bool index_differs = false;  // pairs lie the other way in index_k
  bool norm_round = false, pre_rope_round = false, pre_quant_round = false, clamp_positions = false;
  Quantise quantise;
  std::int64_t row_gap = 0, row_offset = 0;  // elements between rows, and before the first
  int threads = 1;

  std::int64_t record() const {
    switch (layout) {
      case MlaLayout::bf16: return 2 * (kv + rope);
      case MlaLayout::fp8: return kv + rope;
      case MlaLayout::fp8_ds_mla: break;
    }
    return kv + kv / 128 * 4 + 2 * rope;
  }
  std::int64_t mla_stride() const { return mla_block * record() + block_padding; }
  std::int64_t index_stride() const { return index_block * (index + 4) + block_padding; }
};

Shape ds_mla() {
  Shape shape;
  shape.kv = 512;
  shape.rope = 64;
  shape.layout = MlaLayout::fp8_ds_mla;
  return shape;
}

// A launch's inputs, dense, and the launch itself.
struct Trial {
  Shape shape;
  Codes q_c, q_weight, kv_c, kv_weight, k_pe, index_k, rope_bf16, index_rope_bf16;
  std::vector<float> index_weight, index_bias, rope, index_rope;
  std::vector<std::int64_t> positions, slots, index_slots;
  float scale = 0.3F, q_eps = 1e-6F, kv_eps = 1e-5F, index_eps = 3e-6F;

  explicit Trial(const Shape& of, std::uint32_t seed = 1) : shape(of) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    const auto codes = [&](std::int64_t n, float mean, float sigma) {
      Codes out(static_cast<std::size_t>(n));
      for (auto& code : out) code = dcpcheck::encode_bf16(mean + sigma * normal(generator));
      return out;
    };
    const auto floats = [&](std::int64_t n, float mean, float sigma) {
      std::vector<float> out(static_cast<std::size_t>(n));
      for (float& value : out) value = mean + sigma * normal(generator);
      return out;
    };
    const std::int64_t t = shape.tokens;
    q_c = codes(t * shape.q, 0, 2);
    q_weight = codes(shape.q, 1, 0.2F);
    kv_c = codes(t * shape.kv, 0, 0.5F);
    kv_weight = codes(shape.kv, 1, 0.2F);
    k_pe = codes(t * shape.rope, 0, 1);
    index_k = codes(t * shape.index, 3, 1);
    index_weight = floats(shape.index, 1, 0.2F);
    index_bias = floats(shape.index, 0, 0.1F);
    rope = floats(shape.positions * shape.rope, 0, 0.7F);
    index_rope = floats(shape.positions * shape.index_rope, 0, 0.7F);
    for (const float value : rope) rope_bf16.push_back(dcpcheck::encode_bf16(value));
    for (const float value : index_rope) index_rope_bf16.push_back(dcpcheck::encode_bf16(value));
    for (std::int64_t i = 0; i < t; ++i) {
      positions.push_back((7 * i + 3) % shape.positions);
      // Every third row is another rank's; the others go to scattered slots of blocks 1 and up.
      slots.push_back(i % 3 == 1 ? -1 : shape.mla_block + (5 * i) % ((shape.blocks - 1) * shape.mla_block));
      index_slots.push_back(i % 3 == 2 ? -1 : shape.index_block + (5 * i) % ((shape.blocks - 1) * shape.index_block));
    }
  }

  template <class Decisions = Fixed>
  Result run() const {
    const Shape& s = shape;
    Args args;
    std::vector<Codes> storage;  // of the strided tensors; reserved, so that addresses hold
    storage.reserve(16);
    const auto place = [&](const Codes& dense, std::int64_t width) {
      Codes& memory = storage.emplace_back(static_cast<std::size_t>(s.row_offset + s.tokens * (width + s.row_gap)), kPoison);
      for (std::int64_t t = 0; t < s.tokens && !dense.empty(); ++t) {
        std::copy_n(dense.begin() + t * width, width, memory.begin() + s.row_offset + t * (width + s.row_gap));
      }
      return OutRows{memory.data() + s.row_offset, width + s.row_gap};
    };
    const auto in = [](const OutRows& rows) { return Rows{rows.data, rows.stride}; };
    const OutRows q_c_at = place(q_c, s.q), kv_c_at = place(kv_c, s.kv), k_pe_at = place(k_pe, s.rope);
    const std::size_t outputs = storage.size();

    args.tokens = s.tokens;
    args.positions = positions.data();
    args.q_c = in(q_c_at);
    args.q_weight = q_weight.data();
    args.q_c_out = place({}, s.q);
    args.q_width = s.q;
    args.q_eps = q_eps;
    args.kv_c = in(kv_c_at);
    args.kv_weight = kv_weight.data();
    if (s.kv_c_out) args.kv_c_out = s.in_place ? kv_c_at : place({}, s.kv);
    args.kv_width = s.kv;
    args.kv_eps = kv_eps;
    args.k_pe = in(k_pe_at);
    if (s.k_pe_out) args.k_pe_out = s.in_place ? k_pe_at : place({}, s.rope);
    args.rope = {s.bf16_tables ? static_cast<const void*>(rope_bf16.data()) : rope.data(), s.rope, s.positions, s.bf16_tables,
                 s.interleaved};
    Result result;
    result.mla.assign(static_cast<std::size_t>((s.blocks + 2) * s.mla_stride()), kPoisonByte);
    result.indexer.assign(static_cast<std::size_t>((s.blocks + 2) * s.index_stride()), kPoisonByte);
    args.mla = {result.mla.data() + s.mla_stride(), s.mapped ? slots.data() : nullptr, s.mla_block, s.mla_stride(), s.blocks};
    args.mla_layout = s.layout;
    args.mla_record = s.record();
    args.mla_scale = &scale;
    args.tile_scale = s.tile_scale;
    const std::int64_t topk_stride = s.topk + s.row_gap;
    std::vector<std::int32_t> topk(static_cast<std::size_t>((s.tokens + 2) * topk_stride), 77);
    if (s.indexer) {
      args.has_indexer = true;
      args.index_k = in(place(index_k, s.index));
      args.index_weight = index_weight.data();
      args.index_bias = index_bias.data();
      if (s.index_k_out) args.index_k_out = place({}, s.index);
      args.index_width = s.index;
      args.index_eps = index_eps;
      args.index_rope = {s.bf16_tables ? static_cast<const void*>(index_rope_bf16.data()) : index_rope.data(), s.index_rope,
                         s.positions, s.bf16_tables, s.interleaved != s.index_differs};
      args.indexer = {result.indexer.data() + s.index_stride(), s.mapped ? index_slots.data() : nullptr, s.index_block,
                      s.index_stride(), s.blocks};
      args.indexer_scales = s.index_block * s.index;
      args.topk = topk.data();
      args.topk_stride = topk_stride;
      args.topk_width = s.topk;
    }
    args.norm_round = s.norm_round;
    args.pre_rope_round = s.pre_rope_round;
    args.pre_quant_round = s.pre_quant_round;
    args.quantise = s.quantise;
    args.clamp_positions = s.clamp_positions;

    result.refused = launch_host<Decisions>(args, s.threads);

    const auto gather = [&](const OutRows& rows, std::int64_t width) {
      Codes dense;
      for (std::int64_t t = 0; rows.data != nullptr && t < s.tokens; ++t) {
        std::uint16_t* const row = rows.data + t * rows.stride;
        dense.insert(dense.end(), row, row + width);
        std::fill_n(row, width, kPoison);  // what is left then is what lay around
      }
      return dense;
    };
    result.q_c_out = gather(args.q_c_out, s.q);
    result.kv_c_out = gather(args.kv_c_out, s.kv);
    result.k_pe_out = gather(args.k_pe_out, s.rope);
    result.index_k_out = gather(args.index_k_out, s.index);
    for (std::size_t i = outputs; i < storage.size(); ++i) {
      if (storage[i].data() == args.index_k.data - s.row_offset) continue;
      for (const std::uint16_t code : storage[i]) {
        if (code != kPoison) result.around.push_back(code);
      }
    }
    for (std::int64_t t = 0; t < s.tokens + 2; ++t) {
      for (std::int64_t i = 0; i < topk_stride; ++i) {
        const std::int32_t value = topk[static_cast<std::size_t>(t * topk_stride + i)];
        if (t < s.tokens && i < s.topk) {
          result.topk.push_back(value);
        } else if (value != 77) {
          result.around.push_back(1);
        }
      }
    }
    return result;
  }

  // The expected values, in fp64 and from nothing but the inputs.
  double rope_element(std::int64_t t, std::int64_t i, bool index) const {
    const std::int64_t width = index ? shape.index_rope : shape.rope;
    const std::int64_t at = positions[t] * width + i;
    if (shape.bf16_tables) return dcpcheck::decode_bf16((index ? index_rope_bf16 : rope_bf16)[at]);
    return static_cast<double>((index ? index_rope : rope)[at]);
  }
  static std::vector<double> rms(const Codes& x, const Codes& weight, std::int64_t t, std::int64_t n, double eps) {
    double squares = 0;
    std::vector<double> out;
    for (std::int64_t i = 0; i < n; ++i) squares += std::pow(dcpcheck::decode_bf16(x[t * n + i]), 2);
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
    for (std::int64_t i = 0; i < n; ++i)
      out.push_back(dcpcheck::decode_bf16(x[t * n + i]) * rstd * dcpcheck::decode_bf16(weight[i]));
    return out;
  }
  std::vector<double> turned(std::vector<double> x, std::int64_t t, std::int64_t width, bool index) const {
    std::vector<double> out = x;
    for (std::int64_t i = 0; i < width / 2; ++i) {
      const bool interleaved = shape.interleaved != (index && shape.index_differs);
      const std::int64_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + width / 2;
      const double cos = rope_element(t, i, index), sin = rope_element(t, width / 2 + i, index);
      out[a] = x[a] * cos - x[b] * sin;
      out[b] = x[a] * sin + x[b] * cos;
    }
    return out;
  }
  std::vector<double> q_row(std::int64_t t) const { return rms(q_c, q_weight, t, shape.q, q_eps); }
  std::vector<double> kv_row(std::int64_t t) const { return rms(kv_c, kv_weight, t, shape.kv, kv_eps); }
  std::vector<double> k_pe_row(std::int64_t t) const {
    std::vector<double> x;
    for (std::int64_t i = 0; i < shape.rope; ++i) x.push_back(dcpcheck::decode_bf16(k_pe[t * shape.rope + i]));
    return turned(x, t, shape.rope, false);
  }
  std::vector<double> index_row(std::int64_t t) const {
    const std::int64_t n = shape.index;
    std::vector<double> x;
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < n; ++i) x.push_back(dcpcheck::decode_bf16(index_k[t * n + i]));
    for (const double value : x) sum += value;
    for (double& value : x) {
      value -= sum / static_cast<double>(n);
      squares += value * value;
    }
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(n) + static_cast<double>(index_eps));
    for (std::int64_t i = 0; i < n; ++i)
      x[i] = x[i] * rstd * static_cast<double>(index_weight[i]) + static_cast<double>(index_bias[i]);
    return turned(x, t, shape.index_rope, true);
  }
};

// Half a bf16 step of `exact`, and what fp32 may lose where terms of about `size` cancel.
void expect_bf16(std::uint16_t got, double exact, double size, const std::string& where) {
  EXPECT_NEAR(static_cast<double>(dcpcheck::decode_bf16(got)), exact, std::abs(exact) * 0x1.02p-8 + size * 1e-5) << where;
}

// The same for a code and its scale: half of 2^-3 relative, or half of 2^-9 below the normal codes.
void expect_e4m3(std::uint8_t got, double scale, double exact, const std::string& where) {
  const double bound = std::max(std::abs(exact) * 0x1.02p-4, scale * 0x1.02p-10) + 1e-5;
  EXPECT_NEAR(static_cast<double>(dcpcheck::decode_e4m3(got)) * scale, std::clamp(exact, -448 * scale, 448 * scale), bound)
      << where;
}

void expect_rows(const Codes& got, std::int64_t tokens, const std::string& name, auto row_of) {
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::vector<double> expected = row_of(t);
    ASSERT_EQ(got.size(), expected.size() * static_cast<std::size_t>(tokens)) << name;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expect_bf16(got[static_cast<std::size_t>(t) * expected.size() + i], expected[i], 4,
                  name + " " + std::to_string(t) + " " + std::to_string(i));
    }
  }
}

template <class T>
T read(const Bytes& bytes, std::int64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Checks every output and every byte of both caches.
void expect_right(const Trial& trial, const Result& got) {
  const Shape& s = trial.shape;
  EXPECT_EQ(got.refused, "");
  EXPECT_TRUE(got.around.empty()) << "written outside the rows";
  expect_rows(got.q_c_out, s.tokens, "q_c_out", [&](std::int64_t t) { return trial.q_row(t); });
  if (s.kv_c_out) expect_rows(got.kv_c_out, s.tokens, "kv_c_out", [&](std::int64_t t) { return trial.kv_row(t); });
  if (s.k_pe_out) expect_rows(got.k_pe_out, s.tokens, "k_pe_out", [&](std::int64_t t) { return trial.k_pe_row(t); });
  if (s.indexer && s.index_k_out) {
    expect_rows(got.index_k_out, s.tokens, "index_k_out", [&](std::int64_t t) { return trial.index_row(t); });
  }
  EXPECT_EQ(std::count(got.topk.begin(), got.topk.end(), s.indexer ? -1 : 77), s.tokens * s.topk);

  Bytes mla = got.mla, indexer = got.indexer;  // what is checked becomes poison, so that stray writes are what is left
  for (std::int64_t t = 0; s.mapped && t < s.tokens; ++t) {
    const std::string where = std::string("token ") + std::to_string(t);
    if (const std::int64_t slot = trial.slots[t]; slot >= 0) {
      const std::int64_t at = (1 + slot / s.mla_block) * s.mla_stride() + slot % s.mla_block * s.record();
      const std::vector<double> kv = trial.kv_row(t), pe = trial.k_pe_row(t);
      for (std::int64_t i = 0; i < s.kv; ++i) {
        if (s.layout == MlaLayout::bf16) expect_bf16(read<std::uint16_t>(mla, at + 2 * i), kv[i], 1, where);
        if (s.layout == MlaLayout::fp8) expect_e4m3(read<std::uint8_t>(mla, at + i), trial.scale, kv[i], where);
        if (s.layout == MlaLayout::fp8_ds_mla) {
          expect_e4m3(read<std::uint8_t>(mla, at + i), read<float>(mla, at + s.kv + i / 128 * 4), kv[i], where);
        }
      }
      for (std::int64_t tile = 0; s.layout == MlaLayout::fp8_ds_mla && tile < s.kv / 128; ++tile) {
        double amax = 0;
        for (std::int64_t i = 0; i < 128; ++i) amax = std::max(amax, std::abs(kv[tile * 128 + i]));
        const double scale = read<float>(mla, at + s.kv + tile * 4);
        if (s.tile_scale == TileScale::pow2) {
          EXPECT_EQ(scale, std::exp2(std::ceil(std::log2(std::max(amax / 448, 1e-4))))) << where;
        } else {
          EXPECT_NEAR(scale, amax / 448, amax / 448 * 1e-5) << where;
        }
      }
      const std::int64_t pe_at =
          at + (s.layout == MlaLayout::bf16 ? 2 * s.kv : s.record() - (s.layout == MlaLayout::fp8 ? s.rope : 2 * s.rope));
      for (std::int64_t i = 0; i < s.rope; ++i) {
        if (s.layout == MlaLayout::fp8) {
          expect_e4m3(read<std::uint8_t>(mla, pe_at + i), trial.scale, pe[i], where);
        } else {
          expect_bf16(read<std::uint16_t>(mla, pe_at + 2 * i), pe[i], 4, where);
        }
      }
      std::fill_n(mla.begin() + at, s.record(), kPoisonByte);
    }
    if (const std::int64_t slot = trial.index_slots[t]; s.indexer && slot >= 0) {
      const std::int64_t block = (1 + slot / s.index_block) * s.index_stride(), row = slot % s.index_block;
      const std::int64_t at = block + row * s.index, scale_at = block + s.index_block * s.index + row * 4;
      const std::vector<double> key = trial.index_row(t);
      double amax = 0;
      for (const double value : key) amax = std::max(amax, std::abs(value));
      const double scale = read<float>(indexer, scale_at);
      EXPECT_EQ(scale, std::exp2(std::ceil(std::log2(std::max(amax, 1e-4) / 448)))) << where;
      for (std::int64_t i = 0; i < s.index; ++i) expect_e4m3(read<std::uint8_t>(indexer, at + i), scale, key[i], where);
      std::fill_n(indexer.begin() + at, s.index, kPoisonByte);
      std::fill_n(indexer.begin() + scale_at, 4, kPoisonByte);
    }
  }
  EXPECT_EQ(std::count(mla.begin(), mla.end(), kPoisonByte), static_cast<std::ptrdiff_t>(mla.size())) << "MLA cache";
  EXPECT_EQ(std::count(indexer.begin(), indexer.end(), kPoisonByte), static_cast<std::ptrdiff_t>(indexer.size()))
      << "indexer cache";
}

// ---- values ------------------------------------------------------------------------------------------------------

TEST(FusedNormRope, ByHand) {
  // Width 2, x = (3, 4), eps 0: rms = sqrt(12.5). One turn by a quarter.
  Shape shape;
  shape.tokens = 1;
  shape.q = shape.kv = shape.rope = shape.index = shape.index_rope = 2;
  shape.positions = 1;
  Trial trial(shape);
  trial.q_c = trial.kv_c = trial.k_pe = {0x4040, 0x4080};
  trial.q_weight = {0x3F80, 0x4000};  // 1, 2
  trial.rope = {0, 1};
  trial.index_k = {0x4040, 0x40A0};  // 3, 5: LayerNorm gives -1, 1
  trial.index_weight = {1, 2};
  trial.index_bias = {0.5F, 0.25F};
  trial.index_rope = {1, 0};
  trial.q_eps = trial.index_eps = 0;
  const Result got = trial.run();
  const auto value = [](std::uint16_t code) { return dcpcheck::decode_bf16(code); };
  EXPECT_NEAR(value(got.q_c_out[0]), 0.848528, 0.004);
  EXPECT_NEAR(value(got.q_c_out[1]), 2.262742, 0.01);
  EXPECT_EQ(value(got.k_pe_out[0]), -4);
  EXPECT_EQ(value(got.k_pe_out[1]), 3);
  EXPECT_EQ(value(got.index_k_out[0]), -0.5F);
  EXPECT_EQ(value(got.index_k_out[1]), 2.25F);
  // amax 2.25: 2.25 / 448 lies just over 2^-8, so the scale is 2^-7, and the codes are those of -64 and 288.
  const std::int64_t at = shape.index_stride() * 2;  // slot 8: row 0 of block 1
  EXPECT_EQ(read<float>(got.indexer, at + 8 * 2), 0x1p-7F);
  EXPECT_EQ(dcpcheck::decode_e4m3(read<std::uint8_t>(got.indexer, at)), -64);
  EXPECT_EQ(dcpcheck::decode_e4m3(read<std::uint8_t>(got.indexer, at + 1)), 288);
}

TEST(FusedNormRope, EveryLayoutAndRope) {
  for (const MlaLayout layout : {MlaLayout::bf16, MlaLayout::fp8, MlaLayout::fp8_ds_mla}) {
    for (const bool interleaved : {true, false}) {
      for (const bool bf16_tables : {true, false}) {
        for (const TileScale rule : {TileScale::fp32_div, TileScale::fp32_mul, TileScale::pow2}) {
          if (layout != MlaLayout::fp8_ds_mla && rule != TileScale::fp32_div) continue;
          Shape shape = layout == MlaLayout::fp8_ds_mla ? ds_mla() : Shape{};
          shape.layout = layout;
          shape.interleaved = interleaved;
          shape.bf16_tables = bf16_tables;
          shape.tile_scale = rule;
          const Trial trial(shape);
          SCOPED_TRACE(std::string("layout ") + std::to_string(static_cast<int>(layout)) + " interleaved " +
                       std::to_string(interleaved));
          expect_right(trial, trial.run());
        }
      }
    }
  }
}

TEST(FusedNormRope, OddWidthsAndNoRope) {
  for (const std::int64_t width : {1, 2, 127, 128, 129, 1536}) {
    Shape shape;
    shape.q = width;
    shape.kv = width;
    shape.index = width;
    shape.index_rope = std::min<std::int64_t>(width / 2 * 2, 64);
    for (const std::int64_t rope : {0, 2}) {
      shape.rope = rope;
      shape.k_pe_out = rope > 0;
      if (rope == 0) shape.index_rope = 0;
      for (const MlaLayout layout : {MlaLayout::bf16, MlaLayout::fp8}) {
        shape.layout = layout;
        shape.block_padding = 4;
        shape.index_block = 4;
        Trial trial(shape);
        if (width == 1) std::fill(trial.index_k.begin(), trial.index_k.end(), std::uint16_t{0x3F80});
        SCOPED_TRACE(std::string("width ") + std::to_string(width) + " rope " + std::to_string(rope));
        expect_right(trial, trial.run());
      }
    }
  }
}

TEST(FusedNormRope, WideRows) {
  Shape shape;
  shape.tokens = 2;
  shape.q = 16384;
  shape.kv = 8192;
  shape.index = 4096;
  shape.index_rope = 1024;
  shape.rope = 1024;
  const Trial trial(shape);
  expect_right(trial, trial.run());
}

TEST(FusedNormRope, OutputsAreOptional) {
  for (int asked = 0; asked < 16; ++asked) {
    Shape shape;
    shape.kv_c_out = (asked & 1) != 0;
    shape.k_pe_out = (asked & 2) != 0;
    shape.index_k_out = (asked & 4) != 0;
    shape.indexer = (asked & 8) != 0;
    const Trial trial(shape);
    expect_right(trial, trial.run());
  }
}

TEST(FusedNormRope, WithoutSlotsOutputsComeAndCachesStay) {
  Shape shape;
  shape.mapped = false;
  const Trial trial(shape);
  expect_right(trial, trial.run());
  EXPECT_EQ(trial.run(), trial.run<faults::k_gated>());
  EXPECT_EQ(trial.run(), trial.run<faults::q_gated>());
  EXPECT_EQ(trial.run(), trial.run<faults::cache_unguarded>());
}

TEST(FusedNormRope, NoTokensIsAValidCall) {
  Shape shape;
  shape.tokens = 0;
  const Trial trial(shape);
  expect_right(trial, trial.run());
}

TEST(FusedNormRope, TooManyTokensAreRefused) {
  Args args;
  args.tokens = std::int64_t{1} << 31;
  EXPECT_NE(launch_host<Fixed>(args, 1), "");
}

// ---- the same bits -----------------------------------------------------------------------------------------------

TEST(FusedNormRope, InPlaceStridesAndThreadsChangeNoBit) {
  for (const MlaLayout layout : {MlaLayout::bf16, MlaLayout::fp8, MlaLayout::fp8_ds_mla}) {
    for (const bool interleaved : {true, false}) {
      Shape shape = ds_mla();
      shape.tokens = 200;
      shape.blocks = 80;
      shape.layout = layout;
      shape.interleaved = interleaved;
      const Result plain = Trial(shape).run();
      Shape in_place = shape;
      in_place.in_place = true;
      EXPECT_EQ(Trial(in_place).run(), plain);
      Shape strided = shape;
      strided.row_gap = 5;
      strided.row_offset = 3;
      EXPECT_EQ(Trial(strided).run(), plain);
      strided.in_place = true;
      EXPECT_EQ(Trial(strided).run(), plain);
      Shape threaded = shape;
      threaded.threads = 5;
      EXPECT_EQ(Trial(threaded).run(), plain);
    }
  }
}

TEST(FusedNormRope, OutputsDoNotDependOnSlots) {
  Trial trial(Shape{});
  const Result some = trial.run();
  std::fill(trial.slots.begin(), trial.slots.end(), -1);
  std::fill(trial.index_slots.begin(), trial.index_slots.end(), std::numeric_limits<std::int64_t>::min());
  const Result none = trial.run();
  expect_right(trial, none);
  EXPECT_EQ(none.q_c_out, some.q_c_out);
  EXPECT_EQ(none.kv_c_out, some.kv_c_out);
  EXPECT_EQ(none.k_pe_out, some.k_pe_out);
  EXPECT_EQ(none.index_k_out, some.index_k_out);
}

TEST(FusedNormRope, CachesAreAddressedByTheirOwnMaps) {
  Trial trial(Shape{});
  const Result before = trial.run();
  std::fill(trial.index_slots.begin(), trial.index_slots.end(), -1);
  const Result after = trial.run();
  EXPECT_EQ(after.mla, before.mla);
  EXPECT_NE(after.indexer, before.indexer);
}

// ---- contract options --------------------------------------------------------------------------------------------

TEST(FusedNormRope, RoundingOptionsTouchWhatTheyNameAndNothingElse) {
  Shape shape = ds_mla();
  const Result plain = Trial(shape).run();
  Shape norm = shape;
  norm.norm_round = true;
  const Result normed = Trial(norm).run();
  EXPECT_NE(normed.q_c_out, plain.q_c_out);
  EXPECT_NE(normed.kv_c_out, plain.kv_c_out);
  EXPECT_NE(normed.mla, plain.mla);
  EXPECT_EQ(normed.index_k_out, plain.index_k_out);
  EXPECT_EQ(normed.k_pe_out, plain.k_pe_out);

  Shape rope = shape;
  rope.pre_rope_round = true;
  const Result roped = Trial(rope).run();
  EXPECT_NE(roped.index_k_out, plain.index_k_out);
  EXPECT_EQ(roped.k_pe_out, plain.k_pe_out);
  EXPECT_EQ(roped.mla, plain.mla);

  Shape quant = shape;
  quant.pre_quant_round = true;
  const Result quantised = Trial(quant).run();
  EXPECT_NE(quantised.mla, plain.mla);
  EXPECT_EQ(quantised.kv_c_out, plain.kv_c_out);
  EXPECT_EQ(quantised.index_k_out, plain.index_k_out);
}

TEST(FusedNormRope, NormRoundRoundsBeforeTheWeight) {
  Shape shape;
  shape.norm_round = true;
  const Trial trial(shape);
  const Result got = trial.run();
  for (std::int64_t t = 0; t < shape.tokens; ++t) {
    double squares = 0;
    for (std::int64_t i = 0; i < shape.q; ++i) squares += std::pow(dcpcheck::decode_bf16(trial.q_c[t * shape.q + i]), 2);
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(shape.q) + 1e-6);
    for (std::int64_t i = 0; i < shape.q; ++i) {
      const double normed = dcpcheck::decode_bf16(trial.q_c[t * shape.q + i]) * rstd;
      // Values within a part in 10^5 of a tie may round either way.
      const double weight = dcpcheck::decode_bf16(trial.q_weight[i]);
      const auto below = dcpcheck::encode_bf16(static_cast<float>(normed * (1 - 1e-5)));
      const auto above = dcpcheck::encode_bf16(static_cast<float>(normed * (1 + 1e-5)));
      if (below != above) continue;
      const auto expected = dcpcheck::encode_bf16(static_cast<float>(dcpcheck::decode_bf16(below) * weight));
      EXPECT_EQ(got.q_c_out[t * shape.q + i], expected) << t << ' ' << i;
    }
  }
}

TEST(FusedNormRope, OverflowAndNaNFollowTheContract) {
  Shape shape;
  shape.layout = MlaLayout::fp8;
  for (const bool saturate : {true, false}) {
    for (const bool clamp : {true, false}) {
      shape.quantise = Quantise(saturate, clamp);
      Trial trial(shape);
      trial.scale = 1e-6F;  // nearly everything is out of range
      trial.kv_c[0] = 0x7FC0;
      const Result got = trial.run();
      const std::int64_t at = 2 * shape.mla_stride();                   // token 0: slot 4, row 0 of block 1
      EXPECT_EQ(read<std::uint8_t>(got.mla, at), clamp ? 0x7E : 0x7F);  // the row's rstd is NaN
      const std::int64_t slot = trial.slots[2];
      const auto code = read<std::uint8_t>(got.mla, (1 + slot / 4) * shape.mla_stride() + slot % 4 * shape.record());
      const double exact = trial.kv_row(2)[0] / 1e-6;
      ASSERT_GT(std::abs(exact), 465);
      EXPECT_EQ(code, saturate ? (exact < 0 ? 0xFE : 0x7E) : 0x7F);
      EXPECT_EQ(got.kv_c_out[0], 0x7FC0);
    }
  }
}

TEST(FusedNormRope, TilesOfZerosNaNsAndInfinities) {
  for (const TileScale rule : {TileScale::fp32_div, TileScale::fp32_mul, TileScale::pow2}) {
    Shape shape = ds_mla();
    shape.tile_scale = rule;
    Trial trial(shape);
    std::fill_n(trial.kv_c.begin(), 512, std::uint16_t{0});
    std::fill_n(trial.index_k.begin(), shape.index, std::uint16_t{0x3F80});
    std::fill(trial.index_bias.begin(), trial.index_bias.end(), 0.0F);
    const Result got = trial.run();
    const std::int64_t at = 2 * shape.mla_stride();
    EXPECT_EQ(read<float>(got.mla, at + 512), rule == TileScale::pow2 ? 0x1p-13F : std::numeric_limits<float>::min());
    EXPECT_EQ(read<std::uint8_t>(got.mla, at) & 0x7F, 0);
    EXPECT_EQ(read<float>(got.indexer, 2 * shape.index_stride() + 8 * shape.index), 0x1p-22F);

    // A NaN weight spoils one element; the tile's scale comes from the others.
    trial = Trial(shape);
    const auto scale = read<float>(trial.run().mla, at + 512);
    double amax = 0;
    const std::vector<double> row = trial.kv_row(0);
    for (int i = 0; i < 128; ++i) amax = std::max(amax, std::abs(row[i]));
    const auto least =
        std::min_element(row.begin(), row.begin() + 128, [](double a, double b) { return std::abs(a) < std::abs(b); });
    trial.kv_weight[least - row.begin()] = 0x7FC0;
    const Result spoilt = trial.run();
    EXPECT_EQ(read<float>(spoilt.mla, at + 512), scale);
    EXPECT_EQ(read<std::uint8_t>(spoilt.mla, at + (least - row.begin())), 0x7F);

    // An infinite one takes the scale with it.
    trial.kv_weight[least - row.begin()] = 0x7F80;
    const Result infinite = trial.run();
    EXPECT_EQ(read<float>(infinite.mla, at + 512), std::numeric_limits<float>::infinity());
    EXPECT_EQ(read<std::uint8_t>(infinite.mla, at + (least - row.begin())), 0x7F);
    EXPECT_EQ(read<std::uint8_t>(infinite.mla, at + (least - row.begin() + 1) % 128) & 0x7F, 0);
  }
}

TEST(FusedNormRope, PositionsOutsideTheTableAreClampedWhereTheContractAllowsThem) {
  Shape shape;
  shape.clamp_positions = true;
  Trial trial(shape);
  Trial inside = trial;
  trial.positions[1] = shape.positions + 1000;
  inside.positions[1] = shape.positions - 1;
  trial.positions[2] = -5;
  inside.positions[2] = 0;
  EXPECT_EQ(trial.run(), inside.run());
  expect_right(inside, inside.run());
}

// ---- faults ------------------------------------------------------------------------------------------------------

// Rows of `got` that differ from `right`, which in a fault that leaves early are poison throughout.
std::vector<std::int64_t> unwritten_rows(const Codes& got, const Codes& right, std::int64_t width) {
  std::vector<std::int64_t> rows;
  for (std::int64_t t = 0; t * width < static_cast<std::int64_t>(got.size()); ++t) {
    const auto row = got.begin() + t * width;
    if (std::all_of(row, row + width, [](std::uint16_t code) { return code == kPoison; })) {
      rows.push_back(t);
    } else {
      EXPECT_TRUE(std::equal(row, row + width, right.begin() + t * width)) << "row " << t;
    }
  }
  return rows;
}

TEST(FusedNormRopeFaults, KGatedLeavesKOfOtherRanksUnwritten) {
  const Trial trial(Shape{});
  const Result right = trial.run(), got = trial.run<faults::k_gated>();
  const std::vector<std::int64_t> others = {1, 4, 7};
  EXPECT_EQ(unwritten_rows(got.kv_c_out, right.kv_c_out, trial.shape.kv), others);
  EXPECT_EQ(unwritten_rows(got.k_pe_out, right.k_pe_out, trial.shape.rope), others);
  EXPECT_EQ(got.q_c_out, right.q_c_out);
  EXPECT_EQ(got.index_k_out, right.index_k_out);
  EXPECT_EQ(got.topk, right.topk);
  EXPECT_EQ(got.mla, right.mla);
  EXPECT_EQ(got.indexer, right.indexer);
}

TEST(FusedNormRopeFaults, QGatedLeavesQAsWellUnwritten) {
  const Trial trial(Shape{});
  const Result right = trial.run(), got = trial.run<faults::q_gated>();
  const std::vector<std::int64_t> others = {1, 4, 7};
  EXPECT_EQ(unwritten_rows(got.q_c_out, right.q_c_out, trial.shape.q), others);
  EXPECT_EQ(unwritten_rows(got.kv_c_out, right.kv_c_out, trial.shape.kv), others);
  EXPECT_EQ(unwritten_rows(got.k_pe_out, right.k_pe_out, trial.shape.rope), others);
  EXPECT_EQ(got.index_k_out, right.index_k_out);
  EXPECT_EQ(got.topk, right.topk);
  EXPECT_EQ(got.mla, right.mla);
  EXPECT_EQ(got.indexer, right.indexer);
}

TEST(FusedNormRopeFaults, CacheUnguardedWritesOneRecordBelowTheCaches) {
  for (const MlaLayout layout : {MlaLayout::bf16, MlaLayout::fp8, MlaLayout::fp8_ds_mla}) {
    Shape shape = ds_mla();
    shape.layout = layout;
    Trial trial(shape);
    trial.slots[2] = -100;  // negative, but not -1: left alone
    const Result right = trial.run(), got = trial.run<faults::cache_unguarded>();
    EXPECT_EQ(got.q_c_out, right.q_c_out);
    EXPECT_EQ(got.kv_c_out, right.kv_c_out);
    EXPECT_EQ(got.k_pe_out, right.k_pe_out);
    // Where the bytes differ: MLA, one record below the base; indexer, one row of codes below the base, and the scale
    // one below block 0's scales.
    const auto first_and_last = [](const Bytes& a, const Bytes& b) {
      std::int64_t first = -1, last = -1;
      for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] == b[i]) continue;
        if (first < 0) first = static_cast<std::int64_t>(i);
        last = static_cast<std::int64_t>(i);
      }
      return std::pair(first, last);
    };
    const auto [mla_first, mla_last] = first_and_last(right.mla, got.mla);
    EXPECT_GE(mla_first, shape.mla_stride() - shape.record());
    EXPECT_LT(mla_first, shape.mla_stride() - shape.record() + 8);
    EXPECT_LT(mla_last, shape.mla_stride());
    EXPECT_GE(mla_last, shape.mla_stride() - 8);
    const auto [index_first, index_last] = first_and_last(right.indexer, got.indexer);
    EXPECT_GE(index_first, shape.index_stride() - shape.index);
    EXPECT_LT(index_first, shape.index_stride() - shape.index + 8);
    const std::int64_t scale_at = shape.index_stride() + shape.index_block * shape.index - 4;
    EXPECT_GE(index_last, scale_at);
    EXPECT_LT(index_last, scale_at + 4);
    for (std::int64_t i = shape.index_stride(); i < scale_at; ++i) ASSERT_EQ(got.indexer[i], right.indexer[i]);
  }
}

// What a fault changes: some of "q" for q_c_out, "k" for kv_c_out, "p" for k_pe_out, "i" for index_k_out, "t" for
// topk_indices, "m" and "x" for the MLA and the indexer cache.
template <class Fault>
std::string changed(const Trial& trial) {
  const Result right = trial.run(), got = trial.run<Fault>();
  EXPECT_TRUE(got.around.empty()) << Fault::name;
  std::string out;
  if (got.q_c_out != right.q_c_out) out += "q";
  if (got.kv_c_out != right.kv_c_out) out += "k";
  if (got.k_pe_out != right.k_pe_out) out += "p";
  if (got.index_k_out != right.index_k_out) out += "i";
  if (got.topk != right.topk) out += "t";
  if (got.mla != right.mla) out += "m";
  if (got.indexer != right.indexer) out += "x";
  return out;
}

TEST(FusedNormRopeFaults, IndexKGatedLeavesItsRowsOfOtherRanksUnwritten) {
  Trial trial(Shape{});
  const Result right = trial.run(), got = trial.run<faults::index_k_gated>();
  EXPECT_EQ(unwritten_rows(got.index_k_out, right.index_k_out, trial.shape.index), (std::vector<std::int64_t>{2, 5, 8}));
  EXPECT_EQ(changed<faults::index_k_gated>(trial), "i");
  Shape unmapped;
  unmapped.mapped = false;
  EXPECT_EQ(changed<faults::index_k_gated>(Trial(unmapped)), "");
}

TEST(FusedNormRopeFaults, GridsThatLoseTokens) {
  Args args;
  args.tokens = 65535;
  EXPECT_EQ(launch_host<faults::tokens_on_grid_y>(args, 1), "");
  args.tokens = 65536;
  EXPECT_NE(launch_host<faults::tokens_on_grid_y>(args, 1), "");
  EXPECT_EQ(launch_host<Fixed>(args, 1), "");
  Trial trial(Shape{});
  EXPECT_EQ(changed<faults::tokens_on_grid_y>(trial), "");

  const Result right = trial.run(), got = trial.run<faults::late_tokens_unwritten>();
  const std::vector<std::int64_t> last = {8};  // of 9 tokens
  EXPECT_EQ(unwritten_rows(got.q_c_out, right.q_c_out, trial.shape.q), last);
  EXPECT_EQ(unwritten_rows(got.kv_c_out, right.kv_c_out, trial.shape.kv), last);
  EXPECT_EQ(unwritten_rows(got.index_k_out, right.index_k_out, trial.shape.index), last);
  EXPECT_EQ(std::count(got.topk.begin(), got.topk.end(), 77), trial.shape.topk);
  Shape whole;
  whole.tokens = 8;
  EXPECT_EQ(changed<faults::late_tokens_unwritten>(Trial(whole)), "");
}

TEST(FusedNormRopeFaults, RowsInTheWrongPlaceOfACache) {
  Trial trial(Shape{});
  const Shape& shape = trial.shape;
  const Result right = trial.run();
  // Rows that another rank owns end up in the last slot, and nothing else changes.
  const Result last = trial.run<faults::last_slot_for_negative>();
  const auto differ = [](const Bytes& a, const Bytes& b, std::int64_t from, std::int64_t to) {
    return !std::equal(a.begin() + from, a.begin() + to, b.begin() + from);
  };
  const std::int64_t mla_at = (shape.blocks + 1) * shape.mla_stride() - shape.block_padding - shape.record();
  EXPECT_TRUE(differ(last.mla, right.mla, mla_at, mla_at + shape.record()));
  EXPECT_FALSE(differ(last.mla, right.mla, 0, mla_at));
  const std::int64_t codes_at = shape.blocks * shape.index_stride() + (shape.index_block - 1) * shape.index;
  EXPECT_TRUE(differ(last.indexer, right.indexer, codes_at, codes_at + shape.index));
  EXPECT_FALSE(differ(last.indexer, right.indexer, 0, codes_at));
  EXPECT_EQ(changed<faults::last_slot_for_negative>(trial), "mx");

  EXPECT_EQ(changed<faults::slot_maps_swapped>(trial), "mx");
  Trial same = trial;
  same.index_slots = same.slots;
  EXPECT_EQ(changed<faults::slot_maps_swapped>(same), "");
  // Each cache as with the two maps exchanged, as both have room for all their slots.
  Trial swapped = trial;
  std::swap(swapped.slots, swapped.index_slots);
  if (*std::max_element(trial.index_slots.begin(), trial.index_slots.end()) < shape.blocks * shape.mla_block) {
    EXPECT_EQ(trial.run<faults::slot_maps_swapped>().mla, swapped.run().mla);
  }
  EXPECT_EQ(trial.run<faults::slot_maps_swapped>().indexer, swapped.run().indexer);

  EXPECT_EQ(changed<faults::block_size_of_stride>(trial), "");  // padded by less than a row
  Shape padded;
  padded.block_padding = padded.record() + 8;
  EXPECT_EQ(changed<faults::block_size_of_stride>(Trial(padded)), "mx");
  EXPECT_EQ(changed<faults::indexer_rows_interleaved>(trial), "x");
}

TEST(FusedNormRopeFaults, OutputsBeforeTheCacheShowInPlace) {
  for (const MlaLayout layout : {MlaLayout::bf16, MlaLayout::fp8, MlaLayout::fp8_ds_mla}) {
    Shape shape = ds_mla();
    shape.layout = layout;
    EXPECT_EQ(changed<faults::outputs_before_the_cache>(Trial(shape)), "");
    shape.in_place = true;
    EXPECT_EQ(changed<faults::outputs_before_the_cache>(Trial(shape)), "m");
  }
}

TEST(FusedNormRopeFaults, TopkTailUnfilledFillsWholeBlocksOf128) {
  Shape shape;
  shape.topk = 256;
  EXPECT_EQ(changed<faults::topk_tail_unfilled>(Trial(shape)), "");
  shape.topk = 300;
  EXPECT_EQ(changed<faults::topk_tail_unfilled>(Trial(shape)), "t");
  const Result got = Trial(shape).run<faults::topk_tail_unfilled>();
  EXPECT_EQ(std::count(got.topk.begin(), got.topk.end(), 77), shape.tokens * 44);
}

TEST(FusedNormRopeFaults, NormsDifferWhereTheyShould) {
  Trial trial(Shape{});
  EXPECT_EQ(changed<faults::truncated_stores>(trial), "qkpim");
  EXPECT_EQ(changed<faults::last_element_dropped>(trial), "qkm");
  EXPECT_EQ(changed<faults::mean_over_one_more>(trial), "qkm");
  EXPECT_EQ(changed<faults::weight_one_off>(trial), "qkm");
  EXPECT_EQ(changed<faults::rounded_before_the_weight>(trial), "qkm");
  EXPECT_EQ(changed<faults::variance_over_padded_lanes>(trial), "ix");
  EXPECT_EQ(changed<faults::variance_over_one_less>(trial), "ix");
  EXPECT_EQ(changed<faults::index_weight_in_bf16>(trial), "ix");
  Shape shape;
  shape.norm_round = true;
  EXPECT_EQ(changed<faults::rounded_before_the_weight>(Trial(shape)), "");
  shape.index = 64;
  EXPECT_EQ(changed<faults::variance_over_padded_lanes>(Trial(shape)), "");

  trial.q_eps = trial.index_eps = 0.5F;
  trial.kv_eps = 0.25F;
  EXPECT_EQ(changed<faults::eps_left_out>(trial), "qkimx");
  EXPECT_EQ(changed<faults::eps_outside_the_root>(trial), "qkimx");
  EXPECT_EQ(changed<faults::eps_of_q>(trial), "km");
  trial.kv_eps = trial.q_eps;
  EXPECT_EQ(changed<faults::eps_of_q>(trial), "");
  trial.q_eps = trial.kv_eps = trial.index_eps = 0;
  EXPECT_EQ(changed<faults::eps_left_out>(trial), "");
  EXPECT_EQ(changed<faults::eps_outside_the_root>(trial), "");
}

TEST(FusedNormRopeFaults, RopeDiffersWhereItShould) {
  Trial trial(Shape{});
  EXPECT_EQ(changed<faults::position_one_too_low>(trial), "pimx");
  Trial first = trial;
  std::fill(first.positions.begin(), first.positions.end(), 0);
  EXPECT_EQ(changed<faults::position_one_too_low>(first), "");

  EXPECT_EQ(changed<faults::position_in_bf16>(trial), "");
  Shape far;
  far.positions = 1000;
  Trial late(far);
  std::fill(late.positions.begin(), late.positions.end(), 516);
  EXPECT_EQ(changed<faults::position_in_bf16>(late), "");
  std::fill(late.positions.begin(), late.positions.end(), 515);  // 514 in bf16
  EXPECT_EQ(changed<faults::position_in_bf16>(late), "pimx");
  Trial rounded = late;
  std::fill(rounded.positions.begin(), rounded.positions.end(), 514);
  EXPECT_EQ(late.run<faults::position_in_bf16>(), rounded.run());

  EXPECT_EQ(changed<faults::positions_stale_past_256>(trial), "");
  Shape many;
  many.tokens = 300;
  many.blocks = 160;
  Trial batch(many);
  EXPECT_EQ(changed<faults::positions_stale_past_256>(batch), "pimx");
  const Result stale = batch.run<faults::positions_stale_past_256>();
  std::copy_n(batch.positions.begin(), 44, batch.positions.begin() + 256);
  EXPECT_EQ(stale, batch.run());

  EXPECT_EQ(changed<faults::k_pe_pairing_swapped>(trial), "pm");
  EXPECT_EQ(changed<faults::index_interleaved_always>(trial), "");
  EXPECT_EQ(changed<faults::index_pairs_as_k_pe>(trial), "");
  Shape shape;
  shape.index_differs = true;
  EXPECT_EQ(changed<faults::index_interleaved_always>(Trial(shape)), "ix");
  EXPECT_EQ(changed<faults::index_pairs_as_k_pe>(Trial(shape)), "ix");
  shape.interleaved = false;
  EXPECT_EQ(changed<faults::index_interleaved_always>(Trial(shape)), "");
  EXPECT_EQ(changed<faults::index_pairs_as_k_pe>(Trial(shape)), "ix");
  expect_right(Trial(shape), Trial(shape).run());
}

TEST(FusedNormRopeFaults, ScalesDifferWhereTheyShould) {
  const Trial bf16(Shape{});
  const Trial tiles(ds_mla());
  EXPECT_EQ(changed<faults::amax_over_half>(bf16), "x");
  EXPECT_EQ(changed<faults::amax_over_half>(tiles), "mx");
  EXPECT_EQ(changed<faults::e4m3_max_447>(tiles), "m");
  EXPECT_EQ(changed<faults::scale_of_neighbour_tile>(tiles), "m");
  EXPECT_EQ(changed<faults::exponent_floored>(tiles), "x");
  EXPECT_EQ(changed<faults::floor_missing>(tiles), "");
  EXPECT_EQ(changed<faults::tile_amax_floored>(tiles), "");
  EXPECT_EQ(changed<faults::index_scale_floored>(tiles), "");
  EXPECT_EQ(changed<faults::exponent_by_frexp>(tiles), "");

  Shape shape = ds_mla();
  shape.tile_scale = TileScale::pow2;
  shape.index_rope = 0;
  EXPECT_EQ(changed<faults::exponent_floored>(Trial(shape)), "mx");
  // Token 0: slots 4 and 8, row 0 of block 1.
  Trial zeros(shape);
  std::fill_n(zeros.kv_c.begin(), shape.kv, std::uint16_t{0});
  std::fill_n(zeros.index_weight.begin(), shape.index, 0.0F);
  std::fill_n(zeros.index_bias.begin(), shape.index, 0.0F);
  const std::int64_t mla_at = 2 * shape.mla_stride(), index_at = 2 * shape.index_stride();
  const std::int64_t tile_scale_at = mla_at + shape.kv, index_scale_at = index_at + shape.index_block * shape.index;
  EXPECT_EQ(read<float>(zeros.run().mla, tile_scale_at), 0x1p-13F);
  EXPECT_EQ(read<float>(zeros.run<faults::tile_amax_floored>().mla, tile_scale_at), 0x1p-22F);
  EXPECT_EQ(changed<faults::tile_amax_floored>(zeros), "m");
  EXPECT_EQ(read<float>(zeros.run().indexer, index_scale_at), 0x1p-22F);
  EXPECT_EQ(read<float>(zeros.run<faults::index_scale_floored>().indexer, index_scale_at), 0x1p-13F);
  EXPECT_EQ(changed<faults::index_scale_floored>(zeros), "x");
  const Result unfloored = zeros.run<faults::floor_missing>();
  EXPECT_EQ(read<std::uint8_t>(unfloored.mla, mla_at), 0x7F);
  EXPECT_EQ(read<std::uint8_t>(unfloored.indexer, index_at), 0x7F);

  Trial critical = zeros;  // an amax of 448: a scale of 1
  std::fill_n(critical.index_bias.begin(), shape.index, 448.0F);
  EXPECT_EQ(read<float>(critical.run().indexer, index_scale_at), 1.0F);
  EXPECT_EQ(read<float>(critical.run<faults::exponent_by_frexp>().indexer, index_scale_at), 2.0F);
  EXPECT_EQ(read<float>(critical.run<faults::exponent_floored>().indexer, index_scale_at), 1.0F);

  Shape fp8;
  fp8.layout = MlaLayout::fp8;
  Trial tie(fp8);
  tie.scale = 7.0F / 32;
  std::fill_n(tie.rope.begin() + tie.positions[0] * fp8.rope, fp8.rope / 2, 1.0F);
  std::fill_n(tie.rope.begin() + tie.positions[0] * fp8.rope + fp8.rope / 2, fp8.rope / 2, 0.0F);
  tie.k_pe[0] = dcpcheck::encode_bf16(tie.scale * 25 / 16);  // half way between 1.5 and 1.625
  const std::int64_t code_at = 2 * fp8.mla_stride() + fp8.kv;
  EXPECT_EQ(dcpcheck::decode_e4m3(read<std::uint8_t>(tie.run().mla, code_at)), 1.5F);
  EXPECT_EQ(dcpcheck::decode_e4m3(read<std::uint8_t>(tie.run<faults::reciprocal_of_scale>().mla, code_at)), 1.625F);
}

}  // namespace
}  // namespace kernels::fused_norm_rope
