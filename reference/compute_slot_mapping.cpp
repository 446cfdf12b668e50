// What compute_slot_mapping must give, by dealing positions out one after the other.
#include <algorithm>
#include <cstring>
#include <string>

#include "harness/core/parallel.hpp"
#include "reference/deal.hpp"
#include "reference/decode.hpp"

#include "harness/oracle/admissible.hpp"

namespace dcpcheck::reference {

Expected compute_slot_mapping(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options);

namespace {

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
