#include "harness/commands/diagnosis.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "harness/core/inputs.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

// The live rows whose slot in `group` is negative on `rank`.
Ranges rows_without_slot(const Plan& plan, const std::string& group, std::int64_t rank) {
  const std::vector<std::int64_t> slots = slots_of(plan, group, rank);
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < std::min<std::int64_t>(plan.live, std::ssize(slots)); ++row)
    if (slots[static_cast<std::size_t>(row)] < 0) rows.push_back(row);
  return to_ranges(rows);
}

// The group whose negative slots are exactly the unwritten rows of every such violation; empty: there is none.
std::string gating_group(const Plan& plan, const std::vector<const Violation*>& unwritten) {
  for (const TensorPlan& tensor : plan.tensors) {
    if (tensor.role != Role::cache || tensor.slot_mapping.empty()) continue;
    const std::string& group = tensor.cache.group;
    if (std::all_of(unwritten.begin(), unwritten.end(), [&](const Violation* violation) {
          return !violation->tokens.empty() && violation->tokens == rows_without_slot(plan, group, violation->rank);
        }))
      return group;
  }
  return {};
}

// Whether the violation's first bytes lie below a cache, no further than the kernel block before its first.
bool below_cache(const Plan& plan, const Violation& violation) {
  const TensorPlan* tensor = plan.find(violation.buffer);
  if (violation.reason != Reason::guard || tensor == nullptr || tensor->role != Role::cache) return false;
  if (tensor->cache.sparse) return false;  // a 32-bit offset may come to the same place
  return std::any_of(violation.first.begin(), violation.first.end(), [&](const Element& element) {
    return element.index.size() == 1 && element.index[0] < 0 && element.index[0] >= -tensor->cache.block_stride;
  });
}

// What a negative slot means in this case.
std::string whose_rows(const Plan& plan) {
  return plan.value.geometry.world_size > 1 ? "another rank owns their cache row" : "they have no row in this cache";
}

}  // namespace

std::string diagnose(const Plan& plan, const Verdict& verdict) {
  std::vector<const Violation*> unwritten;
  std::vector<std::string> buffers, below;
  const auto add = [](std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const Violation& violation : verdict.violations) {
    if (violation.reason == Reason::unwritten) {
      unwritten.push_back(&violation);
      add(buffers, violation.buffer);
    }
    if (below_cache(plan, violation)) add(below, violation.buffer);
  }
  if (!unwritten.empty() && !gating_group(plan, unwritten).empty())
    return "the kernel left before it wrote " + text::list(buffers) +
           " for exactly the tokens whose slot is negative on the rank (" + whose_rows(plan) +
           "); every rank needs them for every token";
  if (!below.empty())
    return "the kernel wrote cache rows of tokens whose slot is negative (" + whose_rows(plan) +
           "): the bytes lie below the start of " + text::list(below) + ", where slot -1 would be";
  return {};
}

}  // namespace dcpcheck
