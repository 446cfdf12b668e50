// fused_norm_rope: RMSNorm of q_c and kv_c, RoPE of k_pe, LayerNorm and RoPE of the indexer's key, and their insertion
// into the paged caches of one rank. One block a token and role.
//
// Cache ownership and materialisation of K are two guards: a negative slot keeps a row out of this rank's caches, and
// out of nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/block.cuh"
#include "kernels/math.cuh"
#include "kernels/mla_layout.hpp"
#include "kernels/rms_norm.cuh"
#include "kernels/rope.cuh"

namespace kernels::fused_norm_rope {

// How a tile of fp8_ds_mla gets its scale from its largest magnitude.
enum class TileScale : std::uint8_t {
  fp32_div,  // max(amax / 448, FLT_MIN)
  fp32_mul,  // max(amax * fl(1 / 448), FLT_MIN)
  pow2,      // 2^ceil(log2(max(amax / 448, 1e-4)))
};

// The rows of a matrix: row r starts at data + r * stride. Elements are bf16 codes.
struct Rows {
  const std::uint16_t* data = nullptr;
  std::int64_t stride = 0;
};
struct OutRows {
  std::uint16_t* data = nullptr;  // nullptr: not asked for
  std::int64_t stride = 0;
};

// A paged cache: block = slot / block_size at block * block_stride bytes from data, row = slot % block_size.
struct Cache {
  std::byte* data = nullptr;                   // nullptr: absent
  const std::int64_t* slot_mapping = nullptr;  // [tokens]; nullptr: nothing is written
  std::int64_t block_size = 1;
  std::int64_t block_stride = 0;
  std::int64_t blocks = 0;  // a right kernel needs no count of them: it trusts the slots

  DCPCHECK_HD std::int64_t slots() const { return blocks * block_size; }
};

// A launch's parameters. Strides count elements unless they say bytes.
struct Args {
  std::int64_t tokens = 0;                  // rows of the launch, padding counted in
  const std::int64_t* positions = nullptr;  // [tokens]

  Rows q_c;
  const std::uint16_t* q_weight = nullptr;  // bf16
  OutRows q_c_out;
  std::int64_t q_width = 0;
  float q_eps = 0;

  // kv_c_out and k_pe_out may lie on kv_c and k_pe, row by row.
  Rows kv_c;
  const std::uint16_t* kv_weight = nullptr;  // bf16
  OutRows kv_c_out;
  std::int64_t kv_width = 0;
  float kv_eps = 0;
  Rows k_pe;
  OutRows k_pe_out;
  RopeTable rope;

  Cache mla;
  MlaLayout mla_layout = MlaLayout::bf16;
  std::int64_t mla_record = 0;       // bytes of a record
  const float* mla_scale = nullptr;  // fp8: on the device
  TileScale tile_scale = TileScale::fp32_div;

  bool has_indexer = false;
  Rows index_k;
  const float* index_weight = nullptr;
  const float* index_bias = nullptr;
  OutRows index_k_out;
  std::int64_t index_width = 0;
  float index_eps = 0;
  RopeTable index_rope;
  Cache indexer;                    // a block: block_size * index_width codes …
  std::int64_t indexer_scales = 0;  // … and at this byte of it an fp32 scale a row

  std::int32_t* topk = nullptr;
  std::int64_t topk_stride = 0;
  std::int64_t topk_width = 0;

  bool norm_round = false;       // round a normalised value to bf16 before it is multiplied by the weight
  bool pre_rope_round = false;   // … the indexer's key between LayerNorm and RoPE
  bool pre_quant_round = false;  // … a value before it is quantised, and before its scale is taken
  Quantise quantise;
  std::int64_t rank = 0;         // whose launch it is: nothing of the kernel as it should be depends on it
  bool captured = false;         // the launch is captured into a graph, and replayed from it
  bool approximate = false;      // faults only: see Fixed::launch_approximates
  bool clamp_positions = false;  // a padding token's position may lie outside the rope tables
};

// What a row is normed for.
enum class Use : std::uint8_t { q_c_out, kv_c_out, mla_record };

// The decisions of the kernel as it should be. A fault overrides one of them.
struct Fixed {
  static constexpr const char* name = "";
  static constexpr const char* doc = "";
  static constexpr const char* source = "";
  static constexpr const char* reason = "";
  static constexpr const char* caught_by = "";
  // Whether blocks of one launch write the same bytes. On the host such a fault runs its blocks one after another: a
  // race there would be the program's own, and its findings would differ from run to run.
  static constexpr bool blocks_collide = false;

  // Whether a token's norms run at all, by its slot in the MLA cache: whoever owns its row, they do.
  static DCPCHECK_HD bool row_is_worked(std::int64_t slot) {
    (void)slot;
    return true;
  }
  // Whether the requested K outputs are produced, by the same slot.
  static DCPCHECK_HD bool keys_are_materialised(std::int64_t slot) {
    (void)slot;
    return true;
  }
  // Whether index_k_out is, by the slot in the indexer cache.
  static DCPCHECK_HD bool index_key_is_materialised(std::int64_t slot) {
    (void)slot;
    return true;
  }
  // The slot of a row in a cache of `slots`, by that cache's map and by the other cache's.
  static DCPCHECK_HD std::int64_t slot(std::int64_t own, std::int64_t other, std::int64_t slots) {
    (void)other;
    (void)slots;
    return own;
  }
  // Whether a row is put into a cache of this rank.
  static DCPCHECK_HD bool slot_is_owned(std::int64_t slot) { return slot >= 0; }
  // How many rows a block of a cache has, whose rows take `record` bytes.
  static DCPCHECK_HD std::int64_t block_size(const Cache& cache, std::int64_t record) {
    (void)record;
    return cache.block_size;
  }
  // At which byte of a cache a block starts, and one for its scales, where they lie apart: past 2^31 of a large cache.
  static DCPCHECK_HD std::int64_t block_offset(std::int64_t block, std::int64_t stride) { return block * stride; }
  static DCPCHECK_HD std::int64_t scales_offset(std::int64_t block, std::int64_t stride) { return block * stride; }
  // Whether an indexer block is all codes, then all scales; else a row's scale follows its codes.
  static constexpr bool indexer_is_planar = true;

  // Whether the grid has tokens on x and roles on y, which ends at 65535; and how many tokens are launched.
  static constexpr bool tokens_on_x = true;
  static DCPCHECK_HD std::int64_t launched(std::int64_t tokens) { return tokens; }
  // Whether a row is put into the caches before K is put out, which may lie where the row is read from.
  static constexpr bool cache_first = true;
  // How many elements of a row of topk_indices are filled.
  static DCPCHECK_HD std::int64_t filled(std::int64_t width) { return width; }
  static DCPCHECK_HD void store(std::uint16_t* at, float value) { store_bf16(at, value); }

  // RMSNorm: how many elements are summed, what their sum is divided by, the eps of kv_c, whether a quotient is rounded
  // to bf16 before it is multiplied, and the weight of element i.
  static DCPCHECK_HD std::int64_t summed(std::int64_t width) { return width; }
  static DCPCHECK_HD std::int64_t divisor(std::int64_t width) { return width; }
  static DCPCHECK_HD float rstd(float mean_square, float eps) { return rsqrt(mean_square + eps); }
  static DCPCHECK_HD float kv_eps(float kv, float q) {
    (void)q;
    return kv;
  }
  // Whether a row is normed by way of an approximation: within what the contract leaves open, and so nothing that its values
  // give away. Where that hangs on what is none of the row's business, laws see it. On the host, of a launch as a whole; and of
  // a row and what it is for.
  static bool launch_approximates(const Args& args) {
    (void)args;
    return false;
  }
  static DCPCHECK_HD bool approximates(const Args& args, std::int64_t token, Use use) {
    (void)args;
    (void)token;
    (void)use;
    return false;
  }
  static DCPCHECK_HD bool norm_rounds(bool contract) { return contract; }
  static DCPCHECK_HD std::int64_t weight_at(std::int64_t i) { return i; }

  // LayerNorm: the variance, by the sum of squares about the mean; and a weight as it is multiplied by.
  static DCPCHECK_HD float variance(float squares, float mean, std::int64_t width) {
    (void)mean;
    return squares / static_cast<float>(width);
  }
  static DCPCHECK_HD float index_weight(float weight) { return weight; }

  // RoPE: the row of the tables for a token, and how pairs lie in k_pe and in index_k, by what the contract says of each.
  static DCPCHECK_HD std::int64_t position(const std::int64_t* positions, std::int64_t token) { return positions[token]; }
  static DCPCHECK_HD bool k_pe_interleaved(bool k_pe) { return k_pe; }
  static DCPCHECK_HD bool index_interleaved(bool index, bool k_pe) {
    (void)k_pe;
    return index;
  }

  // Scales: of how many elements the largest magnitude is taken, what it is divided by, whether 1e-4 is the least that it
  // may be or the least of the quotient, what becomes of such floors and of a quotient, and where a tile's scale goes.
  static DCPCHECK_HD std::int64_t amax_width(std::int64_t width) { return width; }
  static constexpr float largest_code = kE4m3Max;
  static constexpr bool tile_floor_on_amax = false;
  static constexpr bool index_floor_on_amax = true;
  static DCPCHECK_HD float floored(float value, float least) { return larger(value, least); }
  static DCPCHECK_HD float power_of_two(float quotient) { return next_pow2(quotient); }
  static DCPCHECK_HD std::int64_t scale_at(std::int64_t tile, std::int64_t tiles) {
    (void)tiles;
    return tile;
  }
  // A value divided by its scale.
  static DCPCHECK_HD float quotient(float value, float scale) { return value / scale; }
};

// Whether `Decisions` overrides any: a fault that does not, by a slip in a name, would be the right kernel.
template <class Decisions>
constexpr bool overrides_a_decision() {
  return !same_function<&Decisions::row_is_worked, &Fixed::row_is_worked> ||
         !same_function<&Decisions::keys_are_materialised, &Fixed::keys_are_materialised> ||
         !same_function<&Decisions::index_key_is_materialised, &Fixed::index_key_is_materialised> ||
         !same_function<&Decisions::slot, &Fixed::slot> || !same_function<&Decisions::slot_is_owned, &Fixed::slot_is_owned> ||
         !same_function<&Decisions::block_size, &Fixed::block_size> ||
         !same_function<&Decisions::block_offset, &Fixed::block_offset> ||
         !same_function<&Decisions::scales_offset, &Fixed::scales_offset> ||
         !same_function<&Decisions::launched, &Fixed::launched> || !same_function<&Decisions::filled, &Fixed::filled> ||
         !same_function<&Decisions::store, &Fixed::store> || !same_function<&Decisions::summed, &Fixed::summed> ||
         !same_function<&Decisions::divisor, &Fixed::divisor> || !same_function<&Decisions::rstd, &Fixed::rstd> ||
         !same_function<&Decisions::kv_eps, &Fixed::kv_eps> ||
         !same_function<&Decisions::launch_approximates, &Fixed::launch_approximates> ||
         !same_function<&Decisions::approximates, &Fixed::approximates> ||
         !same_function<&Decisions::norm_rounds, &Fixed::norm_rounds> ||
         !same_function<&Decisions::weight_at, &Fixed::weight_at> || !same_function<&Decisions::variance, &Fixed::variance> ||
         !same_function<&Decisions::index_weight, &Fixed::index_weight> ||
         !same_function<&Decisions::position, &Fixed::position> ||
         !same_function<&Decisions::k_pe_interleaved, &Fixed::k_pe_interleaved> ||
         !same_function<&Decisions::index_interleaved, &Fixed::index_interleaved> ||
         !same_function<&Decisions::amax_width, &Fixed::amax_width> || !same_function<&Decisions::floored, &Fixed::floored> ||
         !same_function<&Decisions::power_of_two, &Fixed::power_of_two> ||
         !same_function<&Decisions::scale_at, &Fixed::scale_at> || !same_function<&Decisions::quotient, &Fixed::quotient> ||
         Decisions::indexer_is_planar != Fixed::indexer_is_planar || Decisions::tokens_on_x != Fixed::tokens_on_x ||
         Decisions::cache_first != Fixed::cache_first || Decisions::largest_code != Fixed::largest_code ||
         Decisions::tile_floor_on_amax != Fixed::tile_floor_on_amax ||
         Decisions::index_floor_on_amax != Fixed::index_floor_on_amax;
}

// What a block is for: its place on the grid's y.
enum Role : std::int64_t { kIndexer = 0, kKv = 1, kQuery = 2, kTopk = 3, kRoles = 4 };

namespace detail {

// The slot of a token in a cache; any negative one where it has no slot mapping.
DCPCHECK_HD inline std::int64_t slot_of(const Cache& cache, std::int64_t token) {
  return cache.slot_mapping != nullptr ? cache.slot_mapping[token] : -1;
}

template <class Decisions>
DCPCHECK_HD bool inserts(const Cache& cache, std::int64_t slot) {
  return cache.data != nullptr && cache.slot_mapping != nullptr && Decisions::slot_is_owned(slot);
}

// The slot of a token's row in `cache`, where `other` is the rank's other cache.
template <class Decisions>
DCPCHECK_HD std::int64_t inserted_slot(const Cache& cache, const Cache& other, std::int64_t token) {
  const std::int64_t own = slot_of(cache, token);
  return Decisions::slot(own, other.slot_mapping != nullptr ? other.slot_mapping[token] : own, cache.slots());
}

// Where a slot lies: its block, and the row in it. Divisions truncate, as C++'s and Triton's do.
struct Place {
  std::byte* block;
  std::byte* scales;  // the same block, for scales that lie apart
  std::int64_t row;
};
template <class Decisions>
DCPCHECK_HD Place place_of(const Cache& cache, std::int64_t slot, std::int64_t record) {
  const std::int64_t block_size = Decisions::block_size(cache, record);
  const std::int64_t block = slot / block_size;
  return {cache.data + Decisions::block_offset(block, cache.block_stride),
          cache.data + Decisions::scales_offset(block, cache.block_stride), slot % block_size};
}

// RMSNorm of a row: element i normed is value(i).
template <class Decisions, bool Rounded>
struct NormedRow {
  const std::uint16_t* x;
  const std::uint16_t* weight;
  float rstd;

  DCPCHECK_HD float value(std::int64_t i) const {
    return normed<Rounded>(load_bf16(x + i), rstd, load_bf16(weight + Decisions::weight_at(i)));
  }
};

template <class Decisions>
DCPCHECK_HD float rms_rstd(const Block& block, const std::uint16_t* x, std::int64_t width, float eps) {
  const float squares = sum_of_squares(block, Decisions::summed(width), [=](std::int64_t i) { return load_bf16(x + i); });
  return Decisions::rstd(squares / static_cast<float>(Decisions::divisor(width)), eps);
}

// The reciprocal root of a row for one of its uses. The approximation is off by a quarter of what the contract allows a sum of
// `width` squares in any order, and no more.
template <class Decisions>
DCPCHECK_HD float rstd_for(const Args& args, std::int64_t token, Use use, float rstd, std::int64_t width) {
  if (!args.approximate && !Decisions::approximates(args, token, use)) return rstd;
  return rstd * (1.0F + static_cast<float>(width) * 0x1p-27F);
}

// The scale that is a power of two, of a row with the largest magnitude `amax`.
template <class Decisions>
DCPCHECK_HD float pow2_scale(float amax, bool floor_on_amax) {
  constexpr float kLeast = 1e-4F;
  return Decisions::power_of_two(floor_on_amax ? Decisions::floored(amax, kLeast) / Decisions::largest_code
                                               : Decisions::floored(amax / Decisions::largest_code, kLeast));
}

// The scale of a tile with the largest magnitude `amax`.
template <class Decisions>
DCPCHECK_HD float tile_scale(TileScale rule, float amax) {
  constexpr float kLeast = 1.17549435e-38F;  // FLT_MIN
  switch (rule) {
    case TileScale::fp32_div: return Decisions::floored(amax / Decisions::largest_code, kLeast);
    case TileScale::fp32_mul: return Decisions::floored(amax * (1.0F / Decisions::largest_code), kLeast);
    case TileScale::pow2: break;
  }
  return pow2_scale<Decisions>(amax, Decisions::tile_floor_on_amax);
}

}  // namespace detail

// What one block does: a role of a token.
template <class Decisions>
struct Body {
  static DCPCHECK_HD void run(const Args& args, const Block& block) {
    const std::int64_t token = Decisions::tokens_on_x ? block.x : block.y;
    switch (Decisions::tokens_on_x ? block.y : block.x) {
      case kIndexer:
        if (args.has_indexer) indexer(args, block, token);
        break;
      case kKv:
        if (Decisions::norm_rounds(args.norm_round)) {
          kv<true>(args, block, token);
        } else {
          kv<false>(args, block, token);
        }
        break;
      case kQuery:
        if (Decisions::norm_rounds(args.norm_round)) {
          query<true>(args, block, token);
        } else {
          query<false>(args, block, token);
        }
        break;
      default:
        if (args.has_indexer) topk(args, block, token);
    }
  }

 private:
  template <bool Rounded>
  using Row = detail::NormedRow<Decisions, Rounded>;

  // Whether the norms of a token run: a launch without a slot mapping has no slot to ask about.
  static DCPCHECK_HD bool worked(const Args& args, std::int64_t slot) {
    return args.mla.slot_mapping == nullptr || Decisions::row_is_worked(slot);
  }

  static DCPCHECK_HD void topk(const Args& args, const Block& block, std::int64_t token) {
    std::int32_t* const out = args.topk + token * args.topk_stride;
    block.each(Decisions::filled(args.topk_width), [=](std::int64_t i) { out[i] = -1; });
  }

  template <bool Rounded>
  static DCPCHECK_HD void query(const Args& args, const Block& block, std::int64_t token) {
    if (args.q_c_out.data == nullptr || !worked(args, detail::slot_of(args.mla, token))) return;
    const std::uint16_t* const x = args.q_c.data + token * args.q_c.stride;
    std::uint16_t* const out = args.q_c_out.data + token * args.q_c_out.stride;
    const float rstd = detail::rms_rstd<Decisions>(block, x, args.q_width, args.q_eps);
    const Row<Rounded> row{x, args.q_weight, detail::rstd_for<Decisions>(args, token, Use::q_c_out, rstd, args.q_width)};
    block.each(args.q_width, [=](std::int64_t i) { Decisions::store(out + i, row.value(i)); });
  }

  template <bool Rounded>
  static DCPCHECK_HD void kv(const Args& args, const Block& block, std::int64_t token) {
    const std::int64_t slot = detail::slot_of(args.mla, token);
    if (!worked(args, slot)) return;
    const bool materialised = args.mla.slot_mapping == nullptr || Decisions::keys_are_materialised(slot);
    const std::int64_t mla_slot = detail::inserted_slot<Decisions>(args.mla, args.indexer, token);
    const bool inserted = detail::inserts<Decisions>(args.mla, mla_slot);
    std::uint16_t* const kv_out =
        materialised && args.kv_c_out.data != nullptr ? args.kv_c_out.data + token * args.kv_c_out.stride : nullptr;
    std::uint16_t* const pe_out =
        materialised && args.k_pe_out.data != nullptr ? args.k_pe_out.data + token * args.k_pe_out.stride : nullptr;
    std::byte* record = nullptr;
    if (inserted) {
      const detail::Place place = detail::place_of<Decisions>(args.mla, mla_slot, args.mla_record);
      record = place.block + place.row * args.mla_record;
    }

    if (kv_out != nullptr || inserted) {
      const std::uint16_t* const x = args.kv_c.data + token * args.kv_c.stride;
      const float eps = Decisions::kv_eps(args.kv_eps, args.q_eps);
      const float rstd = detail::rms_rstd<Decisions>(block, x, args.kv_width, eps);
      const auto row_for = [=](const Args& a, Use use) {
        return Row<Rounded>{x, a.kv_weight, detail::rstd_for<Decisions>(a, token, use, rstd, a.kv_width)};
      };
      const Row<Rounded> row = row_for(args, Use::kv_c_out), kept = row_for(args, Use::mla_record);
      // The cache first: in place, the output takes the memory that the row is read from.
      if (Decisions::cache_first && inserted) insert_kv(args, block, kept, record);
      if (kv_out != nullptr) block.each(args.kv_width, [=](std::int64_t i) { Decisions::store(kv_out + i, row.value(i)); });
      if (!Decisions::cache_first && inserted) insert_kv(args, block, kept, record);
    }
    if (args.rope.width > 0 && (pe_out != nullptr || inserted)) {
      rotate_k_pe(args, block, token, pe_out, record);
    }
  }

  template <bool Rounded>
  static DCPCHECK_HD void insert_kv(const Args& args, const Block& block, const Row<Rounded>& row, std::byte* record) {
    const Quantise quantise = args.quantise;
    const bool round = args.pre_quant_round;
    if (args.mla_layout == MlaLayout::bf16) {
      auto* const out = reinterpret_cast<std::uint16_t*>(record);
      block.each(args.kv_width, [=](std::int64_t i) { Decisions::store(out + i, row.value(i)); });
      return;
    }
    auto* const codes = reinterpret_cast<std::uint8_t*>(record);
    if (args.mla_layout == MlaLayout::fp8) {
      const float scale = *args.mla_scale;
      block.each(args.kv_width,
                 [=](std::int64_t i) { codes[i] = quantise(Decisions::quotient(round_bf16_if(round, row.value(i)), scale)); });
      return;
    }
    auto* const scales = reinterpret_cast<float*>(record + args.kv_width);
    float* const values = block.scratch;
    // Element i of a tile is one thread's throughout, as tiles are as long as a block has threads: no barrier.
    static_assert(kTile == kLanes);
    block.each(args.kv_width, [=](std::int64_t i) { values[i] = round_bf16_if(round, row.value(i)); });
    const std::int64_t tiles = args.kv_width / kTile;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const float* const in = values + tile * kTile;
      const float amax = block.max(0.0F, Decisions::amax_width(kTile), [=](std::int64_t i) { return magnitude(in[i]); });
      const float scale = detail::tile_scale<Decisions>(args.tile_scale, amax);
      block.each(kTile, [=](std::int64_t i) { codes[tile * kTile + i] = quantise(Decisions::quotient(in[i], scale)); });
      block.each(1, [=](std::int64_t) { scales[Decisions::scale_at(tile, tiles)] = scale; });
    }
  }

  // RoPE of k_pe, to the output (nullptr: not asked for) and to the record (nullptr: not this rank's).
  static DCPCHECK_HD void rotate_k_pe(const Args& args, const Block& block, std::int64_t token, std::uint16_t* out,
                                      std::byte* record) {
    RopeRow rope = rope_row(args.rope, Decisions::position(args.positions, token), args.clamp_positions);
    rope.interleaved = Decisions::k_pe_interleaved(rope.interleaved);
    const std::uint16_t* const x = args.k_pe.data + token * args.k_pe.stride;
    std::uint16_t* bf16_out = nullptr;
    std::uint8_t* codes = nullptr;
    float scale = 1.0F;
    if (record != nullptr) {
      switch (args.mla_layout) {
        case MlaLayout::bf16: bf16_out = reinterpret_cast<std::uint16_t*>(record) + args.kv_width; break;
        case MlaLayout::fp8:
          codes = reinterpret_cast<std::uint8_t*>(record) + args.kv_width;
          scale = *args.mla_scale;
          break;
        case MlaLayout::fp8_ds_mla:
          bf16_out = reinterpret_cast<std::uint16_t*>(record + args.kv_width + args.kv_width / kTile * 4);
          break;
      }
    }
    const Quantise quantise = args.quantise;
    const bool round = args.pre_quant_round;
    block.each(rope.half, [=](std::int64_t i) {
      const std::int64_t at0 = rope.first(i);
      const std::int64_t at1 = rope.second(i);
      // Both are read before either is written: the output may lie on them.
      const Pair turned = rotate({load_bf16(x + at0), load_bf16(x + at1)}, rope.element(i), rope.element(rope.half + i));
      if (out != nullptr) {
        Decisions::store(out + at0, turned.first);
        Decisions::store(out + at1, turned.second);
      }
      if (bf16_out != nullptr) {
        Decisions::store(bf16_out + at0, turned.first);
        Decisions::store(bf16_out + at1, turned.second);
      }
      if (codes != nullptr) {
        codes[at0] = quantise(Decisions::quotient(round_bf16_if(round, turned.first), scale));
        codes[at1] = quantise(Decisions::quotient(round_bf16_if(round, turned.second), scale));
      }
    });
  }

  static DCPCHECK_HD void indexer(const Args& args, const Block& block, std::int64_t token) {
    const bool materialised =
        args.index_k_out.data != nullptr &&
        (args.indexer.slot_mapping == nullptr || Decisions::index_key_is_materialised(detail::slot_of(args.indexer, token)));
    const std::int64_t slot = detail::inserted_slot<Decisions>(args.indexer, args.mla, token);
    const bool inserted = detail::inserts<Decisions>(args.indexer, slot);
    if (!materialised && !inserted) return;

    const std::int64_t width = args.index_width;
    const std::uint16_t* const x = args.index_k.data + token * args.index_k.stride;
    float* const key = block.scratch;
    layer_norm(args, block, x, key);
    if (args.index_rope.width > 0) {
      block.sync();  // a pair's two elements are other threads' than theirs in the loop before, and in the one after
      RopeRow rope = rope_row(args.index_rope, Decisions::position(args.positions, token), args.clamp_positions);
      rope.interleaved = Decisions::index_interleaved(rope.interleaved, args.rope.interleaved);
      block.each(rope.half, [=](std::int64_t i) {
        const std::int64_t at0 = rope.first(i);
        const std::int64_t at1 = rope.second(i);
        const Pair turned = rotate({key[at0], key[at1]}, rope.element(i), rope.element(rope.half + i));
        key[at0] = turned.first;
        key[at1] = turned.second;
      });
      block.sync();
    }
    if (materialised) {
      std::uint16_t* const out = args.index_k_out.data + token * args.index_k_out.stride;
      block.each(width, [=](std::int64_t i) { Decisions::store(out + i, key[i]); });
    }
    if (!inserted) return;

    if (args.pre_quant_round) block.each(width, [=](std::int64_t i) { key[i] = round_bf16(key[i]); });
    const float amax = block.max(0.0F, Decisions::amax_width(width), [=](std::int64_t i) { return magnitude(key[i]); });
    const float scale = detail::pow2_scale<Decisions>(amax, Decisions::index_floor_on_amax);
    const std::int64_t record = width + static_cast<std::int64_t>(sizeof(float));
    const detail::Place place = detail::place_of<Decisions>(args.indexer, slot, record);
    // Scales on multiples of 4 bytes, in a fault too.
    const bool planar = Decisions::indexer_is_planar || width % 4 != 0;
    auto* const codes = reinterpret_cast<std::uint8_t*>(place.block + place.row * (planar ? width : record));
    auto* const scale_at = planar ? reinterpret_cast<float*>(place.scales + args.indexer_scales) + place.row
                                  : reinterpret_cast<float*>(codes + width);
    const Quantise quantise = args.quantise;
    block.each(width, [=](std::int64_t i) { codes[i] = quantise(Decisions::quotient(key[i], scale)); });
    block.each(1, [=](std::int64_t) { *scale_at = scale; });
  }

  // LayerNorm of a row, in two passes: the mean, then the variance about it.
  static DCPCHECK_HD void layer_norm(const Args& args, const Block& block, const std::uint16_t* x, float* out) {
    const auto width = static_cast<float>(args.index_width);
    const float mean = block.sum(args.index_width, [=](std::int64_t i) { return load_bf16(x + i); }) / width;
    const float squares = block.sum(args.index_width, [=](std::int64_t i) {
      const float centred = load_bf16(x + i) - mean;
      return centred * centred;
    });
    const float rstd = Decisions::rstd(Decisions::variance(squares, mean, args.index_width), args.index_eps);
    const float* const weight = args.index_weight;
    const float* const bias = args.index_bias;
    const bool round = args.pre_rope_round;
    block.each(args.index_width, [=](std::int64_t i) {
      const float value = (load_bf16(x + i) - mean) * rstd * Decisions::index_weight(weight[i]) + bias[i];
      out[i] = round_bf16_if(round, value);
    });
  }
};

// The launch's grid: tokens on x, roles on y.
template <class Decisions>
Grid grid(const Args& args) {
  const std::int64_t tokens = Decisions::launched(args.tokens);
  return Decisions::tokens_on_x ? Grid{tokens, kRoles, 1} : Grid{kRoles, tokens, 1};
}

// Floats that a block keeps of a row: the indexer's key, or kv_c in tiles.
inline std::size_t scratch(const Args& args) {
  const std::int64_t index = args.has_indexer ? args.index_width : 0;
  const std::int64_t tiles = args.mla_layout == MlaLayout::fp8_ds_mla ? args.kv_width : 0;
  return static_cast<std::size_t>(index > tiles ? index : tiles);
}

// `args` as the launch is given them.
template <class Decisions>
Args chosen(const Args& args) {
  Args out = args;
  out.approximate = Decisions::launch_approximates(args);
  return out;
}

// Runs the kernel on the host. Returns why the launch is refused, or "".
template <class Decisions>
std::string launch_host(const Args& given, int threads) {
  const Args args = chosen<Decisions>(given);
  return kernels::launch_host(grid<Decisions>(args), scratch(args), Decisions::blocks_collide ? 1 : threads,
                              [&](const Block& block) { Body<Decisions>::run(args, block); });
}

}  // namespace kernels::fused_norm_rope
