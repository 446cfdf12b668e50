// gather_cache: this rank's rows of a chunk of each request's cached context, out of the paged MLA cache into a
// workspace, as bf16. One block a workspace row.
//
// All lengths are in the rank's own rows: the chunk's first row, and the padded length that every rank gathers. Neither
// falls on a block as a rule. Where a rank has fewer rows than the padded length, what lies in its block stands in the
// last ones; nobody reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/batch.cuh"
#include "kernels/block.cuh"
#include "kernels/math.cuh"
#include "kernels/mla_layout.hpp"

namespace kernels::gather_cache {

// A launch's parameters. Strides count elements unless they say bytes.
struct Args {
  // The cache: kernel block b starts at b * block_stride bytes from data, and holds block_size records.
  const std::byte* data = nullptr;
  std::int64_t block_size = 1;
  std::int64_t block_stride = 0;
  std::int64_t record = 0;  // bytes
  MlaLayout layout = MlaLayout::bf16;
  std::int64_t kv_width = 0;
  std::int64_t pe_width = 0;
  const float* mla_scale = nullptr;  // fp8: on the device

  const std::int32_t* table = nullptr;  // kernel-block ids, a row a request
  std::int64_t table_stride = 0;
  std::int64_t table_columns = 0;
  const std::int32_t* local_starts = nullptr;   // [requests]: the chunk's first row
  const std::int32_t* local_offsets = nullptr;  // [requests + 1]: the first workspace row, by padded lengths
  std::int64_t requests = 0;

  std::uint16_t* workspace = nullptr;  // bf16
  std::int64_t workspace_stride = 0;
  std::int64_t rows = 0;  // of the workspace: local_offsets[requests]

  // How positions are split over the ranks. The tables are in the rank's own rows, so a right kernel needs none of it.
  std::int64_t world_size = 1;
  std::int64_t interleave = 1;
  std::int64_t rank = 0;  // of the DCP group, in [0, world_size)
};

// The decisions of the kernel as it should be. A fault overrides one of them.
struct Fixed {
  static constexpr const char* name = "";
  static constexpr const char* doc = "";
  static constexpr const char* source = "";
  static constexpr const char* reason = "";
  static constexpr const char* caught_by = "";

  // The rank's row of a request with which its chunk starts.
  static DCPCHECK_HD std::int64_t first_row(const Args& args, std::int64_t local_start) {
    (void)args;
    return local_start;
  }
  // The place that the block table is asked for, of the rank's row `local`.
  static DCPCHECK_HD std::int64_t place(const Args& args, std::int64_t local) {
    (void)args;
    return local;
  }
  // The bytes from one block to the next.
  static DCPCHECK_HD std::int64_t block_stride(const Args& args) { return args.block_stride; }
  // The tile whose scale a tile's codes are multiplied by.
  static DCPCHECK_HD std::int64_t scale_of(std::int64_t tile) { return tile; }
  // What a code is multiplied by, of the scale that it was divided by.
  static DCPCHECK_HD float factor(float scale) { return scale; }
};

// Whether `Decisions` overrides any: a fault that does not, by a slip in a name, would be the right kernel.
template <class Decisions>
constexpr bool overrides_a_decision() {
  return !same_function<&Decisions::first_row, &Fixed::first_row> || !same_function<&Decisions::place, &Fixed::place> ||
         !same_function<&Decisions::factor, &Fixed::factor> || !same_function<&Decisions::block_stride, &Fixed::block_stride> ||
         !same_function<&Decisions::scale_of, &Fixed::scale_of>;
}

// What one block does: workspace row block.x.
template <class Decisions>
struct Body {
  static DCPCHECK_HD void run(const Args& args, const Block& block) {
    const std::int64_t row = block.x;
    const std::int64_t request = request_of(args.local_offsets, args.requests, row);
    const std::int64_t local = Decisions::first_row(args, args.local_starts[request]) + (row - args.local_offsets[request]);
    const std::int64_t place = Decisions::place(args, local);
    const std::int64_t column = place / args.block_size;
    if (column >= args.table_columns) return;  // the neighbour's blocks come next
    const std::int64_t id = args.table[request * args.table_stride + column];
    const std::byte* const record = args.data + id * Decisions::block_stride(args) + place % args.block_size * args.record;
    std::uint16_t* const out = args.workspace + row * args.workspace_stride;

    switch (args.layout) {
      case MlaLayout::bf16: copy(block, record, args.kv_width + args.pe_width, out); break;
      case MlaLayout::fp8: {
        const auto* const codes = reinterpret_cast<const std::uint8_t*>(record);
        const float scale = Decisions::factor(*args.mla_scale);
        block.each(args.kv_width + args.pe_width,
                   [=](std::int64_t i) { store_bf16(out + i, dcpcheck::decode_e4m3(codes[i]) * scale); });
        break;
      }
      case MlaLayout::fp8_ds_mla: {
        const auto* const codes = reinterpret_cast<const std::uint8_t*>(record);
        const auto* const scales = reinterpret_cast<const float*>(record + args.kv_width);
        block.each(args.kv_width, [=](std::int64_t i) {
          store_bf16(out + i, dcpcheck::decode_e4m3(codes[i]) * Decisions::factor(scales[Decisions::scale_of(i / kTile)]));
        });
        const std::byte* const rope = record + args.kv_width + args.kv_width / kTile * sizeof(float);
        copy(block, rope, args.pe_width, out + args.kv_width);
        break;
      }
    }
  }

 private:
  // bf16 as it is stored, NaNs with their payloads.
  static DCPCHECK_HD void copy(const Block& block, const std::byte* from, std::int64_t width, std::uint16_t* to) {
    const auto* const values = reinterpret_cast<const std::uint16_t*>(from);
    block.each(width, [=](std::int64_t i) { to[i] = values[i]; });
  }
};

// The launch's grid: a block a workspace row.
inline Grid grid(const Args& args) { return {args.rows, 1, 1}; }

// Runs the kernel on the host. Returns why the launch is refused, or "".
template <class Decisions>
std::string launch_host(const Args& args, int threads) {
  return kernels::launch_host(grid(args), 0, threads, [&](const Block& block) { Body<Decisions>::run(args, block); });
}

}  // namespace kernels::gather_cache
