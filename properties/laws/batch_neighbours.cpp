#include <algorithm>

#include "properties/laws/relaunch.hpp"

namespace dcpcheck::laws {
namespace {

constexpr std::int64_t kRequests = 4;  // of a batch that are launched alone

LawFindings check_batch_neighbours(Trial& trial) {
  const Plan& plan = trial.plan();
  const Geometry& geometry = plan.value.geometry;
  if (std::string why = undividable(plan); !why.empty()) return silent(why);
  if (geometry.batch.size() < 2) return silent("there are no neighbours");
  Relaunches relaunches("batch_neighbours", trial);
  if (!relaunches.begin()) return relaunches.findings();
  std::int64_t first = 0, tried = 0;
  for (const Request& request : geometry.batch) {
    const std::vector<std::int64_t> rows = rows_from(first, request.uncached);
    first += request.uncached;
    // A token alone is chunking's.
    if (request.uncached < 2 || tried++ >= kRequests) continue;
    relaunches.add([&] { return of_rows(trial, {request}, rows, "with the request alone"); });
    // As a CUDA graph has it: the launch is as large as before, the others' rows are padding.
    if (!std::count(trial.op().geometry.begin(), trial.op().geometry.end(), "padding")) continue;
    relaunches.add([&]() -> Relaunch {
      Case alone = with_batch(plan.value, {request}, rows);
      if (geometry.padding.tokens == 0) alone.geometry.padding.slots = "int64_min";
      alone.geometry.padding.tokens = plan.tokens - request.uncached;
      for (auto& [name, group] : alone.geometry.caches) {
        for (auto& slots : group.slots) slots.resize(static_cast<std::size_t>(plan.tokens), -1);
      }
      return {derive(trial.setting(), alone, rows, trial.bench().memory), rows, "with padding in the others' place"};
    });
  }
  return relaunches.findings();
}

}  // namespace

Law batch_neighbours() {
  return {"batch_neighbours", "A request gets the same rows alone, and beside others in a batch.", false,
          check_batch_neighbours};
}

}  // namespace dcpcheck::laws
