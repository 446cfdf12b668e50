// What compute_slot_mapping must give, by dealing positions out one after the other: no closed form here.
#include <algorithm>
#include <cstring>
#include <string>

#include "harness/core/parallel.hpp"
#include "reference/decode.hpp"

#include "harness/oracle/admissible.hpp"

namespace dcpcheck::reference {

Expected compute_slot_mapping(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options);

namespace {

// Where each position of a request lies: on which rank, and as that rank's how-manieth row.
struct Deal {
  std::vector<std::int32_t> owner;
  std::vector<std::int64_t> local;
};

// Deals positions 0 .. count - 1 to `ranks` ranks. Each logical block of every rank together make a virtual block; in
// it the ranks take turns, `run` positions a turn, the first rank first.
Deal deal_positions(std::int64_t count, std::int64_t block_size, std::int64_t ranks, std::int64_t run) {
  Deal deal;
  std::vector<std::int64_t> has(static_cast<std::size_t>(ranks), 0);
  std::int64_t in_block = 0, in_run = 0;
  std::size_t turn = 0;
  for (std::int64_t position = 0; position < count; ++position) {
    deal.owner.push_back(static_cast<std::int32_t>(turn));
    deal.local.push_back(has[turn]++);
    if (++in_run == run) {
      in_run = 0;
      turn = turn + 1 == has.size() ? 0 : turn + 1;
    }
    if (++in_block == block_size * ranks) {
      in_block = 0;
      in_run = 0;
      turn = 0;
    }
  }
  return deal;
}

// One cache group's row of the output.
void map_group(const Plan& plan, const Inputs& inputs, std::int64_t rank, const std::string& name, std::int64_t group,
               std::int64_t* slots) {
  const Reader positions(plan, inputs, "positions", rank), starts(plan, inputs, "query_start_loc", rank);
  const Reader rows(plan, inputs, "idx_mapping", rank), table(plan, inputs, "block_table." + name, rank);
  const std::int64_t block = Reader(plan, inputs, "block_sizes", rank).integer(group);
  const std::int64_t kernel_block = Reader(plan, inputs, "kernel_block_sizes", rank).integer(group);
  const bool sharded = Reader(plan, inputs, "sharded", rank).integer(group) != 0;
  const std::int64_t world = plan.value.geometry.world_size;

  const std::int64_t requests = starts.rows() - 1;
  std::int64_t furthest = -1;
  for (std::int64_t t = 0; t < starts.integer(requests); ++t) furthest = std::max(furthest, positions.integer(t));
  // A group that is not sharded lies on every rank as a whole, as if there were one.
  const Deal deal = deal_positions(furthest + 1, block, sharded ? world : 1, sharded ? plan.value.geometry.interleave : block);
  const std::int64_t self = sharded ? rank % world : 0;

  for (std::int64_t request = 0; request < requests; ++request) {
    const std::int64_t row = rows.integer(request);
    for (std::int64_t t = starts.integer(request); t < starts.integer(request + 1); ++t) {
      const auto position = static_cast<std::size_t>(positions.integer(t));
      if (deal.owner[position] != self) continue;
      const std::int64_t local = deal.local[position], column = local / kernel_block;
      if (column >= table.columns()) continue;  // contract column_overflow
      slots[t] = table.integer(row, column) * kernel_block + local % kernel_block;
    }
  }
}

}  // namespace

Expected compute_slot_mapping(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options) {
  std::vector<std::string> names;  // in the order of the output's rows
  for (const auto& [name, group] : plan.value.geometry.caches) {
    if (plan.find("block_table." + name) != nullptr) names.push_back(name);
  }
  Admissible all;
  all.rows = static_cast<std::int64_t>(names.size());
  all.columns = plan.capacity;
  all.exact = true;
  std::vector<std::int64_t> slots(static_cast<std::size_t>(all.rows * all.columns), -1);
  parallel_parts(all.rows, options.threads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t group = begin; group < end; ++group) {
      map_group(plan, inputs, rank, names[static_cast<std::size_t>(group)], group, slots.data() + group * all.columns);
    }
  });
  all.codes.resize(slots.size() * sizeof(std::int64_t));
  if (!slots.empty()) std::memcpy(all.codes.data(), slots.data(), all.codes.size());
  Expected expected;
  expected.emplace("slot_mapping", std::move(all));
  return expected;
}

}  // namespace dcpcheck::reference
