// What the geometry of a case says of positions, tables and slots.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/dcp.hpp"
#include "harness/core/plan.hpp"

namespace dcpcheck {

// One cache group's table and mapping. A group whose slot mapping is "same" has those of the mla group.
class GroupMap {
 public:
  // Throws HarnessError where the plan has no such group, or fewer blocks than its requests need.
  GroupMap(const Plan& plan, const std::string& group);

  const CacheGroup& config() const { return *config_; }
  // Kernel-block ids, a row a request; 0 where the request has no block.
  const std::vector<std::vector<std::int32_t>>& table() const { return table_; }
  // Whether a token's slot follows from its position: "dcp" and "replicated".
  bool by_position() const { return sharded_ || config_->slot_mapping == "replicated"; }
  // The slot of `position` of `request` on `rank`; -1 on ranks that do not own it, and where the table has no column
  // for it. Only where by_position().
  std::int64_t slot(std::int64_t request, std::int64_t position, std::int64_t rank) const;
  // The slots of the launch's tokens on `rank`, padding last.
  std::vector<std::int64_t> slots(std::int64_t rank) const;

 private:
  std::vector<std::int64_t> random_slots(std::int64_t rank) const;

  const Plan* plan_;
  std::string group_;  // "mla" where the mapping is the same as that
  const CacheGroup* config_;
  bool sharded_;
  dcp::Sharding sharding_;  // W = 1 where not sharded
  std::int64_t kernel_block_size_, blocks_, columns_;
  std::vector<std::int64_t> spare_;  // kernel blocks that nothing may be in
  std::vector<std::vector<std::int32_t>> table_;
};

// The integers of an input whose recipe is one of the geometry, in row-major order, for `rank`. Throws InputError where
// the tensor's shape does not suit the recipe.
std::vector<std::int64_t> geometry_values(const Plan& plan, const TensorPlan& tensor, std::int64_t rank);

}  // namespace dcpcheck
