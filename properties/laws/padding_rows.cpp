#include <algorithm>

#include "properties/laws/relaunch.hpp"

namespace dcpcheck::laws {
namespace {

constexpr std::int64_t kAdded = 3;  // padding rows where the case has none

LawFindings check(Trial& trial) {
  const Plan& plan = trial.plan();
  if (plan.live == 0) return silent("there are no live tokens");
  if (std::string why = undividable(plan); !why.empty()) return silent(why);
  Relaunches relaunches("padding_rows", trial);
  if (!relaunches.begin()) return relaunches.findings();
  const auto option = plan.value.contract.find("padding_positions");
  const bool anywhere = option != plan.value.contract.end() && option->second == "any";
  const std::vector<std::int64_t> rows = rows_from(0, plan.live);
  const auto with = [&](const std::string& slots, const std::string& positions, const std::string& values) {
    Case padded = plan.value;
    Padding& padding = padded.geometry.padding;
    const std::int64_t had = padding.tokens;
    padding = {std::max(had, plan.value.geometry.padding.tokens == 0 ? kAdded : had), slots, positions, values};
    if (padded.geometry.max_batched_tokens > 0)
      padded.geometry.max_batched_tokens = std::max(padded.geometry.max_batched_tokens, plan.live + padding.tokens);
    for (auto& [name, group] : padded.geometry.caches) {
      for (auto& listed : group.slots) listed.resize(static_cast<std::size_t>(plan.live + padding.tokens), -1);
    }
    relaunches.add({derive(trial.setting(), padded, rows, trial.bench().memory), rows,
                    "with padding of slots " + slots + " and values " + values});
  };
  with("-1", "zero", "normal:1");
  with("int32_min", "in_range", "nan");
  with("int64_min", "zero", "saturating");
  with("-block", anywhere ? "stale" : "in_range", "nan");
  return relaunches.findings();
}

}  // namespace

Law padding_rows() {
  return {"padding_rows", "Whatever padding rows hold, as slots, positions and values, reaches no live row.", false, check};
}

}  // namespace dcpcheck::laws
