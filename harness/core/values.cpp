#include "harness/core/values.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness/core/bf16.hpp"
#include "harness/core/e4m3.hpp"
#include "harness/core/e8m0.hpp"
#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

using Kind = Recipe::Kind;

// A sum of eight 16-bit uniforms, centred: near enough to normal (Irwin-Hall), exact in fp32, and without a logarithm or
// a cosine, whose last bits differ between machines.
constexpr std::int32_t centre = 8 * 65535 / 2;
// Its standard deviation, sqrt(8 * (2^32 - 1) / 12); it lies within 4.9 of them.
constexpr double deviation = 53509.91992145008;

// From the sum to N(0, sigma), for scale = sigma / deviation.
float normal(std::uint32_t sum, float scale) { return static_cast<float>(static_cast<std::int32_t>(sum) - centre) * scale; }

// One step in the last place of `dtype` for numbers in [1, 2).
float step(DType dtype) {
  switch (dtype) {
    case DType::e4m3: return 0x1p-3f;
    case DType::bf16: return 0x1p-7f;
    default: return 0x1p-23f;
  }
}

constexpr std::array<double, 5> ladder_sigmas = {1, 0.1, 0.03, 0.01, 1e-3};
constexpr std::array<Kind, 6> mixed_kinds = {Kind::normal, Kind::ladder, Kind::signs, Kind::zero, Kind::tiny, Kind::saturating};
// What stands for the LSE of no keys, -inf as often as the other two together.
constexpr std::array<float, 4> empty_lses = {-std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                                             std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()};
constexpr std::int64_t critical_tile = 128;  // elements that share one critical value: the tiles that scales are made of

template <class T>
void store(std::byte* out, std::int64_t index, T value) {
  std::memcpy(out + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

void encode(DType dtype, const std::vector<float>& row, std::byte* out) {
  const auto count = static_cast<std::int64_t>(row.size());
  switch (dtype) {
    case DType::bf16:
      for (std::int64_t i = 0; i < count; ++i) store(out, i, encode_bf16(row[static_cast<std::size_t>(i)]));
      return;
    case DType::e4m3:
      for (std::int64_t i = 0; i < count; ++i) store(out, i, encode_e4m3(row[static_cast<std::size_t>(i)]));
      return;
    case DType::fp32:
      for (std::int64_t i = 0; i < count; ++i) store(out, i, row[static_cast<std::size_t>(i)]);
      return;
    case DType::u8:
    case DType::i32:
    case DType::i64:
    case DType::fp64: throw HarnessError("values of integers are not made as floats");
  }
}

bool holds(DType dtype, double value) {
  if (value != std::trunc(value)) return false;
  switch (dtype) {
    case DType::u8: return value >= 0 && value <= 255;
    case DType::i32: return value >= -0x1p31 && value < 0x1p31;
    default: return value >= -0x1p63 && value < 0x1p63;
  }
}

void store_integer(DType dtype, std::byte* out, std::int64_t index, std::int64_t value) {
  switch (dtype) {
    case DType::u8: return store(out, index, static_cast<std::uint8_t>(value));
    case DType::i32: return store(out, index, static_cast<std::int32_t>(value));
    default: return store(out, index, value);
  }
}

}  // namespace

void check_fills(const std::string& tensor, DType dtype, std::int64_t columns, const Recipe& recipe) {
  const std::string who = tensor + ", of " + std::string(name_of(dtype)) + ", cannot be filled by this recipe: ";
  if (recipe.of_geometry()) throw InputError(who + "values are asked for, and it is one of the geometry");
  if (!is_float(dtype)) {
    const bool integer = recipe.kind == Kind::zero || (recipe.kind == Kind::constant && holds(dtype, recipe.number)) ||
                         (recipe.kind == Kind::below && holds(dtype, recipe.number - 1));
    if (!integer) throw InputError(who + "integers take zero, or a constant or a bound that they hold");
    return;
  }
  if (recipe.kind == Kind::below) throw InputError(who + "below gives integers");
  if (recipe.kind == Kind::sparse && recipe.number > static_cast<double>(columns)) {
    throw InputError(who + "sparse asks for more elements than its rows have, " + std::to_string(columns));
  }
  if (recipe.kind == Kind::unit_circle && columns % 2 != 0) {
    throw InputError(who + "unit_circle needs rows of an even width, not " + std::to_string(columns));
  }
}

RowFiller::RowFiller(std::uint64_t seed, const std::string& tensor, DType dtype, std::int64_t columns, const Recipe& recipe)
    : dtype_(dtype), columns_(columns), recipe_(recipe), elements_(seed, tensor, 0), rows_(seed, tensor, 1) {
  check_fills(tensor, dtype, columns, recipe);
  if (!is_float(dtype)) return;
  row_.resize(static_cast<std::size_t>(columns));
  words_.resize(row_.size());
  blocks_.resize((row_.size() / 2 + 3) / 4);
}

// The row's elements: `mean` + N(0, sigma).
void RowFiller::normals(std::int64_t row, double sigma, float mean) {
  const auto scale = static_cast<float>(sigma / deviation);
  elements_.sums(static_cast<std::uint64_t>(row * columns_), words_);
  for (std::size_t i = 0; i < row_.size(); ++i) row_[i] = normal(words_[i], scale) + mean;
}

void RowFiller::make(Kind kind, std::int64_t row) {
  const auto index = static_cast<std::uint64_t>(row);
  switch (kind) {
    case Kind::normal: return normals(row, recipe_.kind == Kind::normal ? recipe_.number : 1.0, 0.0f);
    case Kind::ladder: return normals(row, ladder_sigmas[index % ladder_sigmas.size()], 0.0f);
    case Kind::large_mean: return normals(row, 1.0, 100.0f);
    case Kind::saturating: return normals(row, 1e4, 0.0f);
    case Kind::tiny: return normals(row, 1e-30, 0.0f);
    case Kind::zero: return std::fill(row_.begin(), row_.end(), 0.0f);
    case Kind::constant: return std::fill(row_.begin(), row_.end(), static_cast<float>(recipe_.number));
    case Kind::nan: return std::fill(row_.begin(), row_.end(), float_of_bits(0x7FC00000u));
    case Kind::signs:
      // Neighbours have opposite signs, and which of the two is positive is drawn: an even row sums to 0 exactly.
      for (std::int64_t pair = 0; pair < columns_; pair += 128) {
        const PhiloxBlock block = elements_.block(static_cast<std::uint64_t>(row * columns_ + pair));
        for (std::int64_t i = pair; i < std::min(pair + 128, columns_); ++i) {
          const std::int64_t bit = (i - pair) / 2;
          const bool positive =
              ((block[static_cast<std::size_t>(bit / 32)] >> (bit % 32)) & 1u) == static_cast<std::uint32_t>(i % 2);
          row_[static_cast<std::size_t>(i)] = positive ? 1.0f : -1.0f;
        }
      }
      return;
    case Kind::critical:
      // A whole tile takes 1.75, or one step above it, or one below: mixed, the largest of the three would hide the rest.
      for (std::int64_t tile = 0; tile < columns_; tile += critical_tile) {
        const PhiloxBlock block = elements_.block(static_cast<std::uint64_t>(row * columns_ + tile));
        const float amax = 1.75f + static_cast<float>(static_cast<int>(block[3] >> 16) % 3 - 1) * step(dtype_);
        PhiloxBlock signs = block;
        for (std::int64_t i = tile; i < std::min(tile + critical_tile, columns_); ++i) {
          if (i % 32 == 0) signs = elements_.block(static_cast<std::uint64_t>(row * columns_ + i));
          const bool negative = ((signs[0] >> (i % 32)) & 1u) != 0;
          const float size = i % 8 == 7 || columns_ < 8 ? amax : 1.0f;
          row_[static_cast<std::size_t>(i)] = negative ? -size : size;
        }
      }
      return;
    case Kind::mixed: return make(mixed_kinds[(index + rows_.word(std::uint64_t{1} << 63)) % mixed_kinds.size()], row);
    case Kind::special: {
      normals(row, 1.0, 0.0f);
      if (row % 4 != 0 || columns_ == 0) return;
      constexpr float infinity = std::numeric_limits<float>::infinity();
      const std::array<float, 3> values = {float_of_bits(0x7FC00000u), infinity, -infinity};
      const PhiloxBlock block = rows_.block(index);
      row_[block[0] % static_cast<std::uint64_t>(columns_)] = values[block[2] % values.size()];
      return;
    }
    case Kind::weights:
      normals(row, 0.2, 1.0f);
      // A constant weight hides which element it belongs to; narrow rows could come to be that by chance.
      if (columns_ >= 2) {
        const float apart = 2 * step(dtype_);
        if (std::fabs(row_[0] - row_[1]) < apart) row_[1] = row_[0] + apart;
      }
      return;
    case Kind::around: {
      normals(row, 0.1, 1.0f);
      const auto middle = static_cast<float>(recipe_.number);
      for (float& value : row_) value *= middle;
      return;
    }
    case Kind::unit_circle: {
      // (1 - t^2) / (1 + t^2), 2t / (1 + t^2) for 0 <= t < 1 is a quarter of the circle; two bits choose the quarter.
      const std::size_t points = row_.size() / 2;
      if (points == 0) return;
      elements_.blocks(index * blocks_.size(), blocks_);
      std::memcpy(words_.data(), blocks_.data(), points * sizeof(std::uint32_t));
      for (std::size_t i = 0; i < points; ++i) {
        const std::uint32_t word = words_[i];
        const float t = static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24f;
        const float below = 1 / (1 + t * t);
        const float cosine = (1 - t * t) * below;
        const float sine = 2 * t * below;
        row_[i] = float_of_bits(float_bits(cosine) ^ (word & 1u) << 31);
        row_[points + i] = float_of_bits(float_bits(sine) ^ (word & 2u) << 30);
      }
      return;
    }
    case Kind::lse:
      normals(row, 5.0, 0.0f);
      for (std::size_t i = 0; i < row_.size(); ++i) {
        // Of 16: 7 as they are, 2 far below, 1 far above, 2 all the same, 4 empty.
        const PhiloxBlock block = rows_.block(index * row_.size() + i);
        const std::uint32_t sixteenth = block[0] >> 28;
        if (sixteenth == 7 || sixteenth == 8) row_[i] -= 1e4f;
        if (sixteenth == 9) row_[i] += 300.0f;
        if (sixteenth == 10 || sixteenth == 11) row_[i] = 2.5f;
        if (sixteenth >= 12) row_[i] = empty_lses[block[1] % empty_lses.size()];
      }
      return;
    case Kind::empty:
      for (std::size_t i = 0; i < row_.size(); ++i) {
        row_[i] = empty_lses[rows_.block(index * row_.size() + i)[1] % empty_lses.size()];
      }
      return;
    case Kind::sparse: {
      // The row is cut into as many parts as are asked for, all but even, and one element of each is kept.
      normals(row, 1.0, 0.0f);
      const auto parts = static_cast<std::int64_t>(recipe_.number);
      std::int64_t done = 0;
      for (std::int64_t part = 0; part < parts; ++part) {
        const std::int64_t begin = columns_ * part / parts, end = columns_ * (part + 1) / parts;
        const std::uint64_t word = rows_.word(index * static_cast<std::uint64_t>(parts) + static_cast<std::uint64_t>(part));
        const std::int64_t kept = begin + static_cast<std::int64_t>(word % static_cast<std::uint64_t>(end - begin));
        for (; done < end; ++done) {
          if (done != kept) row_[static_cast<std::size_t>(done)] = 0.0f;
        }
      }
      return;
    }
    default: throw HarnessError("a recipe of the geometry came to be filled with values");
  }
}

void RowFiller::fill(std::int64_t row, std::byte* out) {
  if (is_float(dtype_)) {
    make(recipe_.kind, row);
    encode(dtype_, row_, out);
    return;
  }
  if (recipe_.kind == Kind::below) {
    const auto bound = static_cast<std::uint64_t>(recipe_.number);
    for (std::int64_t i = 0; i < columns_; ++i) {
      const std::uint64_t word = elements_.word(static_cast<std::uint64_t>(row * columns_ + i));
      store_integer(dtype_, out, i, static_cast<std::int64_t>(word % bound));
    }
    return;
  }
  const std::int64_t value = recipe_.kind == Kind::zero ? 0 : static_cast<std::int64_t>(recipe_.number);
  for (std::int64_t i = 0; i < columns_; ++i) store_integer(dtype_, out, i, value);
}

void fill_gap(DType dtype, std::int64_t count, std::byte* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    switch (dtype) {
      case DType::bf16: store(out, i, bf16_nan); break;
      case DType::fp32: store(out, i, std::uint32_t{0x7FC00000}); break;
      case DType::e4m3: store(out, i, e4m3_nan); break;
      case DType::u8:
      case DType::i32:
      case DType::i64:
      case DType::fp64: std::memset(out + i * size_of(dtype), 0x7F, static_cast<std::size_t>(size_of(dtype))); break;
    }
  }
}

void fill_field(const Stream& stream, DType dtype, std::int64_t count, std::int64_t record, std::byte* out) {
  const auto scale = static_cast<float>(1 / deviation);
  const std::int64_t bytes = count * size_of(dtype);
  const std::int64_t blocks = (bytes + 15) / 16;  // of the kinds that use up the bits
  std::array<std::uint32_t, 64> sums{};
  switch (dtype) {
    case DType::bf16:
      for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(sums.size())) {
        const std::int64_t some = std::min(count - i, static_cast<std::int64_t>(sums.size()));
        stream.sums(static_cast<std::uint64_t>(record * count + i), std::span(sums).first(static_cast<std::size_t>(some)));
        for (std::int64_t j = 0; j < some; ++j)
          store(out, i + j, encode_bf16(normal(sums[static_cast<std::size_t>(j)], scale)));
      }
      return;
    case DType::fp32:
      for (std::int64_t i = 0; i < count; ++i) {
        const std::uint64_t word = stream.word(static_cast<std::uint64_t>(record * count + i));
        store(out, i, power_of_two(static_cast<std::int32_t>(word % 8) - 8));
      }
      return;
    case DType::e4m3:
    case DType::u8:
    case DType::i32:
    case DType::i64:
    case DType::fp64:
      for (std::int64_t i = 0; i < bytes; i += 16) {
        const PhiloxBlock block = stream.block(static_cast<std::uint64_t>(record * blocks + i / 16));
        for (std::int64_t j = i; j < std::min(i + 16, bytes); ++j) {
          auto byte = static_cast<std::uint8_t>(block[static_cast<std::size_t>((j - i) / 4)] >> (8 * (j % 4)));
          if (dtype == DType::e4m3 && (byte & 0x7Fu) == 0x7Fu) byte ^= 1u;
          store(out, j, byte);
        }
      }
      return;
  }
}

}  // namespace dcpcheck
