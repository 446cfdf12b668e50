// Rope tables, and the rows of them that kernels turn pairs of elements by.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/math.cuh"

namespace kernels {

// A rope table: a row a position, cos | sin.
struct RopeTable {
  const void* data = nullptr;
  std::int64_t width = 0;  // elements of a row, twice the pairs; 0: nothing is rotated
  std::int64_t rows = 0;
  bool bf16 = false;         // its elements: bf16, else fp32
  bool interleaved = false;  // pairs (2i, 2i + 1), else (i, i + half)
};

// One position's row of a rope table.
struct RopeRow {
  const void* data = nullptr;
  std::int64_t half = 0;
  bool bf16 = false;
  bool interleaved = false;

  DCPCHECK_HD float element(std::int64_t i) const {
    return bf16 ? load_bf16(static_cast<const std::uint16_t*>(data) + i) : static_cast<const float*>(data)[i];
  }
  // The two elements that pair i turns.
  DCPCHECK_HD std::int64_t first(std::int64_t i) const { return interleaved ? 2 * i : i; }
  DCPCHECK_HD std::int64_t second(std::int64_t i) const { return interleaved ? 2 * i + 1 : i + half; }
};

// The row of `position`; where `clamp`, of the nearest one that the table has. The table must have rows of some width.
DCPCHECK_HD inline RopeRow rope_row(const RopeTable& table, std::int64_t position, bool clamp) {
  if (clamp) {
    position = position < 0 ? 0 : position;
    position = position < table.rows ? position : table.rows - 1;
  }
  const std::int64_t bytes = position * table.width * (table.bf16 ? 2 : 4);
  return {static_cast<const std::byte*>(table.data) + bytes, table.width / 2, table.bf16, table.interleaved};
}

}  // namespace kernels
