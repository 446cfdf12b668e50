#include "kernels/gather_cache/gather_cache.cuh"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/gather_cache/faults/blocks_taken_as_packed.hpp"
#include "kernels/gather_cache/faults/global_positions_in_local_table.hpp"
#include "kernels/gather_cache/faults/local_length_wrong_in_second_chunk.hpp"
#include "kernels/gather_cache/faults/scale_left_out.hpp"
#include "kernels/gather_cache/faults/scale_of_first_tile.hpp"
#include "kernels/gather_cache/faults/start_block_aligned.hpp"

namespace kernels::gather_cache {
namespace {

constexpr std::uint16_t kPoison = 0x5555;

TEST(RequestOf, PassesOverRequestsWithoutRows) {
  const std::vector<std::vector<std::int32_t>> batches = {
      {0, 1}, {0, 5, 5, 5, 7}, {0, 0, 0, 3}, {0, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {0, 0, 4, 4, 4, 4, 9, 9, 9}};
  for (const std::vector<std::int32_t>& offsets : batches) {
    const auto requests = static_cast<std::int64_t>(offsets.size()) - 1;
    for (std::int64_t row = 0; row < offsets.back(); ++row) {
      const auto request = static_cast<std::size_t>(request_of(offsets.data(), requests, row));
      ASSERT_LE(offsets[request], row);
      ASSERT_LT(row, offsets[request + 1]);
    }
  }
}

// A cache whose kernel block b of a request's column c is 10 * (request + 1) + c, with records of a layout.
struct Context {
  MlaLayout layout = MlaLayout::bf16;
  std::int64_t kv = 3, pe = 2, block_size = 4, columns = 6, stride_padding = 12;
  std::vector<std::int32_t> starts{0}, offsets{0, 5};
  std::int64_t world_size = 1, interleave = 1, rank = 0;
  float scale = 0.375F;

  std::int64_t record() const {
    switch (layout) {
      case MlaLayout::bf16: return 2 * (kv + pe);
      case MlaLayout::fp8: return kv + pe;
      case MlaLayout::fp8_ds_mla: break;
    }
    return kv + kv / kTile * 4 + 2 * pe;
  }
  std::int64_t block_stride() const { return block_size * record() + stride_padding; }
  std::int64_t requests() const { return static_cast<std::int64_t>(starts.size()); }

  // Byte i of the record in a slot; as scales these bytes are numbers of ordinary size.
  static std::uint8_t byte_of(std::int64_t slot, std::int64_t i) { return static_cast<std::uint8_t>((slot * 7 + i * 3) % 63); }

  std::vector<std::byte> cache() const {
    const std::int64_t blocks = 10 * (requests() + 1);
    std::vector<std::byte> bytes(static_cast<std::size_t>(blocks * block_stride()), std::byte{0xFF});
    for (std::int64_t slot = 0; slot < blocks * block_size; ++slot) {
      std::byte* const at = bytes.data() + slot / block_size * block_stride() + slot % block_size * record();
      for (std::int64_t i = 0; i < record(); ++i) at[i] = std::byte{byte_of(slot, i)};
    }
    return bytes;
  }

  // The workspace's elements, kPoison where nothing was written; 3 elements past each row stay so, which it checks.
  template <class Decisions = Fixed>
  std::vector<std::uint16_t> run(int threads = 1) const {
    const std::int64_t table_stride = columns + 2, width = kv + pe;
    // Past a row's columns stands a block that there is not.
    std::vector<std::int32_t> table(static_cast<std::size_t>(requests() * table_stride), 1 << 28);
    for (std::int64_t request = 0; request < requests(); ++request) {
      for (std::int64_t column = 0; column < columns; ++column) {
        table[static_cast<std::size_t>(request * table_stride + column)] =
            static_cast<std::int32_t>(10 * (request + 1) + column);
      }
    }
    const std::vector<std::byte> bytes = cache();
    std::vector<std::uint16_t> workspace(static_cast<std::size_t>(offsets.back() * (width + 3)), kPoison);
    Args args;
    args.data = bytes.data();
    args.block_size = block_size;
    args.block_stride = block_stride();
    args.record = record();
    args.layout = layout;
    args.kv_width = kv;
    args.pe_width = pe;
    args.mla_scale = &scale;
    args.table = table.data();
    args.table_stride = table_stride;
    args.table_columns = columns;
    args.local_starts = starts.data();
    args.local_offsets = offsets.data();
    args.requests = requests();
    args.workspace = workspace.data();
    args.workspace_stride = width + 3;
    args.rows = offsets.back();
    args.world_size = world_size;
    args.interleave = interleave;
    args.rank = rank;
    EXPECT_EQ(launch_host<Decisions>(args, threads), "");
    std::vector<std::uint16_t> rows;
    for (std::int64_t row = 0; row < args.rows; ++row) {
      const auto* const at = workspace.data() + row * (width + 3);
      rows.insert(rows.end(), at, at + width);
      for (std::int64_t i = width; i < width + 3; ++i) EXPECT_EQ(at[i], kPoison);
    }
    return rows;
  }

  // The row that the record of a request's row `local` becomes.
  std::vector<std::uint16_t> row_of(std::int64_t request, std::int64_t local) const {
    const std::int64_t slot = (10 * (request + 1) + local / block_size) * block_size + local % block_size;
    std::vector<std::uint8_t> bytes;
    for (std::int64_t i = 0; i < record(); ++i) bytes.push_back(byte_of(slot, i));
    std::vector<std::uint16_t> row(static_cast<std::size_t>(kv + pe));
    if (layout == MlaLayout::bf16) std::memcpy(row.data(), bytes.data(), bytes.size());
    if (layout == MlaLayout::fp8) {
      for (std::size_t i = 0; i < row.size(); ++i) row[i] = dcpcheck::encode_bf16(dcpcheck::decode_e4m3(bytes[i]) * scale);
    }
    if (layout == MlaLayout::fp8_ds_mla) {
      for (std::int64_t i = 0; i < kv; ++i) {
        float tile = 0;
        std::memcpy(&tile, bytes.data() + kv + i / 128 * 4, 4);
        row[static_cast<std::size_t>(i)] =
            dcpcheck::encode_bf16(dcpcheck::decode_e4m3(bytes[static_cast<std::size_t>(i)]) * tile);
      }
      std::memcpy(row.data() + kv, bytes.data() + kv + kv / 128 * 4, static_cast<std::size_t>(pe) * 2);
    }
    return row;
  }

  std::vector<std::uint16_t> right() const {
    std::vector<std::uint16_t> rows;
    for (std::int64_t request = 0; request < requests(); ++request) {
      const auto at = static_cast<std::size_t>(request);
      for (std::int32_t i = 0; i < offsets[at + 1] - offsets[at]; ++i) {
        const std::vector<std::uint16_t> row = row_of(request, starts[at] + i);
        rows.insert(rows.end(), row.begin(), row.end());
      }
    }
    return rows;
  }
};

TEST(GatherCache, RowsOfEachRequestFromItsLocalStart) {
  Context context;
  context.starts = {0, 5, 9, 2, 23};
  context.offsets = {0, 7, 7, 20, 25, 26};
  for (const int threads : {1, 3}) EXPECT_EQ(context.run(threads), context.right());
  context.pe = 0;
  EXPECT_EQ(context.run(), context.right());
}

TEST(GatherCache, DequantisesEachLayout) {
  Context context;
  context.starts = {3, 6};
  context.offsets = {0, 9, 14};
  context.layout = MlaLayout::fp8;
  EXPECT_EQ(context.run(), context.right());
  context.layout = MlaLayout::fp8_ds_mla;
  context.kv = 512;
  context.pe = 64;
  EXPECT_EQ(context.run(), context.right());
}

TEST(GatherCache, NothingToGatherIsNotLaunched) {
  Context context;
  context.offsets = {0, 0};
  EXPECT_TRUE(context.run().empty());
}

TEST(GatherCache, NoColumnPastTheTableRowIsRead) {
  // Rows 22 to 27 of a table of 6 columns of 4: the last four have none, and stay as they were.
  Context context;
  context.starts = {22};
  context.offsets = {0, 6};
  std::vector<std::uint16_t> right = context.row_of(0, 22);
  const std::vector<std::uint16_t> last = context.row_of(0, 23);
  right.insert(right.end(), last.begin(), last.end());
  right.resize(right.size() + 4 * 5, kPoison);
  EXPECT_EQ(context.run(), right);
}

TEST(GatherCache, FaultsDifferWhereTheyShould) {
  // One chunk, from the start, on one rank, in bf16: none shows.
  Context plain;
  EXPECT_EQ(plain.run<faults::local_length_wrong_in_second_chunk>(), plain.right());
  EXPECT_EQ(plain.run<faults::start_block_aligned>(), plain.right());
  EXPECT_EQ(plain.run<faults::scale_left_out>(), plain.right());
  EXPECT_EQ(plain.run<faults::global_positions_in_local_table>(), plain.right());
  // A later chunk that starts with a block.
  Context later;
  later.starts = {4};
  EXPECT_EQ(later.run<faults::start_block_aligned>(), later.right());
  EXPECT_EQ(later.run<faults::local_length_wrong_in_second_chunk>(), plain.right());
  // … inside one.
  Context inside;
  inside.starts = {6};
  EXPECT_EQ(inside.run<faults::start_block_aligned>(), later.right());
  // Row l of rank 1 of two, in runs of 2, is position 2 3 6 7 10.
  Context ranks;
  ranks.world_size = ranks.interleave = 2;
  ranks.rank = 1;
  std::vector<std::uint16_t> wrong;
  for (const std::int64_t position : {2, 3, 6, 7, 10}) {
    const std::vector<std::uint16_t> row = ranks.row_of(0, position);
    wrong.insert(wrong.end(), row.begin(), row.end());
  }
  EXPECT_EQ(ranks.run(), ranks.right());
  EXPECT_EQ(ranks.run<faults::global_positions_in_local_table>(), wrong);
  // No scale reaches the codes of either fp8 layout.
  Context codes;
  codes.layout = MlaLayout::fp8;
  const std::vector<std::uint16_t> without = codes.run<faults::scale_left_out>();
  EXPECT_NE(without, codes.right());
  codes.scale = 1;
  EXPECT_EQ(without, codes.right());
  codes.layout = MlaLayout::fp8_ds_mla;
  codes.kv = 512;
  EXPECT_NE(codes.run<faults::scale_left_out>(), codes.right());
  // Tile 0 has its own scale, the others have not.
  const std::vector<std::uint16_t> right = codes.right(), first = codes.run<faults::scale_of_first_tile>();
  EXPECT_TRUE(std::equal(right.begin(), right.begin() + 128, first.begin()));
  EXPECT_FALSE(std::equal(right.begin() + 128, right.begin() + 256, first.begin() + 128));
}

TEST(GatherCache, BlocksTakenAsPackedShowWhereTheyArePadded) {
  Context context;
  EXPECT_NE(context.run<faults::blocks_taken_as_packed>(), context.right());
  context.stride_padding = 0;
  EXPECT_EQ(context.run<faults::blocks_taken_as_packed>(), context.right());
}

}  // namespace
}  // namespace kernels::gather_cache
