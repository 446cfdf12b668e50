// compute_slot_mapping: where each token's row lies in every cache group of one rank, -1 where another rank owns it.
//
// A logical block of B tokens a rank makes a virtual block of B * W positions, dealt to the W ranks in runs of I. Who
// owns a position is decided in logical blocks; the kernel block Bk enters only where the slot is looked up.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/block.cuh"

namespace kernels::compute_slot_mapping {

// The most cache groups a launch takes: as many as a case may have.
inline constexpr int kGroups = 16;

// A launch's parameters. Strides count elements.
struct Args {
  const std::int64_t* positions = nullptr;        // [tokens]
  const std::int32_t* query_start_loc = nullptr;  // [requests + 1]
  const std::int32_t* idx_mapping = nullptr;      // [requests]: the table row of each
  // Per group, on the device: [groups].
  const std::int32_t* block_sizes = nullptr;
  const std::int32_t* kernel_block_sizes = nullptr;
  const std::int32_t* sharded = nullptr;
  const std::int32_t* enabled = nullptr;
  // Per group, by value: its block table of kernel-block ids, a row a request.
  const std::int32_t* tables[kGroups] = {};
  std::int64_t table_strides[kGroups] = {};
  std::int64_t table_columns[kGroups] = {};
  std::int64_t* slot_mapping = nullptr;  // [groups, capacity]
  std::int64_t slot_stride = 0;
  std::int64_t capacity = 0;
  std::int64_t tokens = 0;    // of the launch, padding counted in
  std::int64_t requests = 0;  // of the batch
  std::int64_t groups = 0;    // at most kGroups
  std::int64_t world_size = 1;
  std::int64_t interleave = 1;
  std::int64_t rank = 0;           // of the DCP group, in [0, world_size)
  bool tail_padded = false;        // -1 from `tokens` on; else from query_start_loc[requests] on
  bool columns_unchecked = false;  // do not look whether a block lies past its table row
  bool slots_i32 = false;          // form id * Bk in 32 bits
};

// The decisions of the kernel as it should be. A fault overrides one of them.
struct Fixed {
  static constexpr const char* name = "";
  static constexpr const char* doc = "";

  // The block in which ownership is decided.
  static DCPCHECK_HD std::int64_t ownership_block(std::int64_t block_size, std::int64_t kernel_block_size) {
    (void)kernel_block_size;
    return block_size;
  }
  // Whether a group's rows are split over the ranks.
  static DCPCHECK_HD bool localised(bool sharded) { return sharded; }
};

// Whether `Decisions` overrides any: a fault that does not, by a slip in a name, would be the right kernel.
template <class Decisions>
constexpr bool overrides_a_decision() {
  return !same_function<&Decisions::ownership_block, &Fixed::ownership_block> ||
         !same_function<&Decisions::localised, &Fixed::localised>;
}

// What one block does: request block.x of group block.y; block.x == requests fills the tail.
template <class Decisions>
struct Body {
  static DCPCHECK_HD void run(const Args& args, const Block& block) {
    const std::int64_t group = block.y;
    if (args.enabled[group] == 0) return;
    std::int64_t* const slots = args.slot_mapping + group * args.slot_stride;
    if (block.x == args.requests) {
      const std::int64_t from = args.tail_padded ? args.tokens : args.query_start_loc[args.requests];
      block.each(args.capacity - from, [=](std::int64_t i) { slots[from + i] = -1; });
      return;
    }

    const std::int64_t first = args.query_start_loc[block.x];
    const std::int64_t tokens = args.query_start_loc[block.x + 1] - first;
    const std::int64_t kernel_block = args.kernel_block_sizes[group];
    const std::int64_t owned_block = Decisions::ownership_block(args.block_sizes[group], kernel_block);
    const bool localised = Decisions::localised(args.sharded[group] != 0);
    const std::int64_t world_size = localised ? args.world_size : 1;
    const std::int64_t rank = localised ? args.rank : 0;
    const std::int64_t interleave = args.interleave;
    const std::int64_t virtual_block = owned_block * world_size;
    const std::int32_t* const table = args.tables[group] + args.idx_mapping[block.x] * args.table_strides[group];
    const std::int64_t columns = args.columns_unchecked ? INT64_MAX : args.table_columns[group];
    const bool slots_i32 = args.slots_i32;
    const std::int64_t* const positions = args.positions;

    block.each(tokens, [=](std::int64_t i) {
      const std::int64_t position = positions[first + i];
      const std::int64_t in_virtual = position % virtual_block;
      std::int64_t slot = -1;
      if (in_virtual / interleave % world_size == rank) {
        const std::int64_t local = position / virtual_block * owned_block +
                                   in_virtual / (interleave * world_size) * interleave + in_virtual % interleave;
        const std::int64_t column = local / kernel_block;
        if (column < columns) {
          const std::int64_t row = local % kernel_block;
          const std::int64_t id = table[column];
          // 32-bit arithmetic wraps; in unsigned, so that it does so by the language's rules.
          slot = slots_i32 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(id * kernel_block + row))
                           : id * kernel_block + row;
        }
      }
      slots[first + i] = slot;
    });
  }
};

// The launch's grid: requests and the tail on x, groups on y.
inline Grid grid(const Args& args) { return {args.requests + 1, args.groups, 1}; }

// Runs the kernel on the host. Returns why the launch is refused, or "".
template <class Decisions>
std::string launch_host(const Args& args, int threads) {
  return kernels::launch_host(grid(args), 0, threads, [&](const Block& block) { Body<Decisions>::run(args, block); });
}

}  // namespace kernels::compute_slot_mapping
