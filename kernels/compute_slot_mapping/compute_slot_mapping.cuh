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

// How the positions of a sequence are split over the ranks.
struct Split {
  std::int64_t block = 1;  // in which ownership is decided
  std::int64_t world_size = 1;
  std::int64_t interleave = 1;

  // The owner of a position, and its place among the owner's.
  DCPCHECK_HD std::int64_t owner(std::int64_t position) const {
    return position % (block * world_size) / interleave % world_size;
  }
  DCPCHECK_HD std::int64_t local(std::int64_t position) const {
    const std::int64_t in_virtual = position % (block * world_size);
    return position / (block * world_size) * block + in_virtual / (interleave * world_size) * interleave +
           in_virtual % interleave;
  }
};

// The decisions of the kernel as it should be. A fault overrides one of them.
struct Fixed {
  static constexpr const char* name = "";
  static constexpr const char* doc = "";
  static constexpr const char* source = "";
  static constexpr const char* reason = "";
  static constexpr const char* caught_by = "";

  // The block in which ownership is decided.
  static DCPCHECK_HD std::int64_t ownership_block(std::int64_t block_size, std::int64_t kernel_block_size) {
    (void)kernel_block_size;
    return block_size;
  }
  // Whether a group's rows are split over the ranks.
  static DCPCHECK_HD bool localised(bool sharded) { return sharded; }
  // The place of a position among its owner's, `first` being the first of the request's in this launch.
  static DCPCHECK_HD std::int64_t local(const Split& split, std::int64_t position, std::int64_t first) {
    (void)first;
    return split.local(position);
  }
  // The table row of a request, by its place in the batch and by idx_mapping.
  static DCPCHECK_HD std::int64_t table_row(std::int64_t request, std::int64_t mapped) {
    (void)request;
    return mapped;
  }
  // The slot of a position whose block lies past its table row, by the row in that block.
  static DCPCHECK_HD std::int64_t past_the_table(std::int64_t row) {
    (void)row;
    return -1;
  }
  // Whether slots are formed in 32 bits.
  static DCPCHECK_HD bool in_32_bits(bool contract) { return contract; }
  // What the tail holds, and where it ends.
  static constexpr std::int64_t padding = -1;
  static DCPCHECK_HD std::int64_t tail_end(std::int64_t capacity, std::int64_t tokens) {
    (void)tokens;
    return capacity;
  }
};

// Whether `Decisions` overrides any: a fault that does not, by a slip in a name, would be the right kernel.
template <class Decisions>
constexpr bool overrides_a_decision() {
  return !same_function<&Decisions::ownership_block, &Fixed::ownership_block> ||
         !same_function<&Decisions::localised, &Fixed::localised> || !same_function<&Decisions::local, &Fixed::local> ||
         !same_function<&Decisions::table_row, &Fixed::table_row> ||
         !same_function<&Decisions::past_the_table, &Fixed::past_the_table> ||
         !same_function<&Decisions::in_32_bits, &Fixed::in_32_bits> || !same_function<&Decisions::tail_end, &Fixed::tail_end> ||
         Decisions::padding != Fixed::padding;
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
      const std::int64_t to = Decisions::tail_end(args.capacity, args.tokens);
      block.each(to - from, [=](std::int64_t i) { slots[from + i] = Decisions::padding; });
      return;
    }

    const std::int64_t first = args.query_start_loc[block.x];
    const std::int64_t tokens = args.query_start_loc[block.x + 1] - first;
    const std::int64_t kernel_block = args.kernel_block_sizes[group];
    const std::int64_t owned_block = Decisions::ownership_block(args.block_sizes[group], kernel_block);
    const bool localised = Decisions::localised(args.sharded[group] != 0);
    const Split split{owned_block, localised ? args.world_size : 1, args.interleave};
    const std::int64_t rank = localised ? args.rank : 0;
    const std::int64_t table_row = Decisions::table_row(block.x, args.idx_mapping[block.x]);
    const std::int32_t* const table = args.tables[group] + table_row * args.table_strides[group];
    const std::int64_t columns = args.columns_unchecked ? INT64_MAX : args.table_columns[group];
    const bool slots_i32 = Decisions::in_32_bits(args.slots_i32);
    const std::int64_t* const positions = args.positions + first;

    block.each(tokens, [=](std::int64_t i) {
      const std::int64_t position = positions[i];
      std::int64_t slot = -1;
      if (split.owner(position) == rank) {
        const std::int64_t local = Decisions::local(split, position, positions[0]);
        const std::int64_t column = local / kernel_block;
        const std::int64_t row = local % kernel_block;
        if (column >= columns) {
          slot = Decisions::past_the_table(row);
        } else {
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
