// Rows of float tensors, by recipe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/core/dtype.hpp"
#include "harness/core/philox.hpp"
#include "harness/core/recipe.hpp"

namespace dcpcheck {

// Throws InputError where the recipe cannot fill rows of `columns` elements of `dtype`: integers take only zero, constants
// that they hold, and below; unit_circle an even width; sparse no more elements than there are. Takes no memory, whatever
// the width.
void check_fills(const std::string& tensor, DType dtype, std::int64_t columns, const Recipe& recipe);

// Fills rows of one tensor. An element depends on seed, tensor, row and column alone. One object per thread.
class RowFiller {
 public:
  // `columns` elements a row. Throws as check_fills does.
  RowFiller(std::uint64_t seed, const std::string& tensor, DType dtype, std::int64_t columns, const Recipe& recipe);

  // Writes row `row` to `out`, columns * size_of(dtype) bytes.
  void fill(std::int64_t row, std::byte* out);

 private:
  void normals(std::int64_t row, double sigma, float mean);
  void make(Recipe::Kind kind, std::int64_t row);

  DType dtype_;
  std::int64_t columns_;
  Recipe recipe_;
  Stream elements_;                   // a block an element
  Stream rows_;                       // a block a row
  std::vector<float> row_;            // before rounding to the dtype
  std::vector<std::uint32_t> words_;  // random ones, of a row
  std::vector<PhiloxBlock> blocks_;
};

// Writes `count` elements of `dtype` to `out`, each a NaN (integers: 0x7F in every byte, which is out of any range).
// Outside a tensor's own elements its storage holds these, so that a wrong stride shows.
void fill_gap(DType dtype, std::int64_t count, std::byte* out);

// The contents of a cache record's field, for cached tokens: `count` elements of the record numbered `record` in
// `stream`. e4m3: any code but NaN; bf16: N(0, 1); fp32, a scale: 2^-8 to 2^-1; integers: any bits.
void fill_field(const Stream& stream, DType dtype, std::int64_t count, std::int64_t record, std::byte* out);

}  // namespace dcpcheck
