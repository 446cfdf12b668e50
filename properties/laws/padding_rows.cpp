#include <algorithm>
#include <optional>
#include <string>

#include "properties/laws/relaunch.hpp"

namespace dcpcheck::laws {
namespace {

constexpr std::int64_t kAdded = 3;  // padding rows where the case has none

// The first buffer that the kernel wrote to where it must not.
std::optional<std::string> writes_astray(const CaseResult& result) {
  for (const Violation& violation : result.verdict.violations)
    if (violation.reason == Reason::guard || violation.reason == Reason::stray_write)
      return violation.buffer + " is written where nothing may be";
  return std::nullopt;
}

LawFindings check_padding_rows(Trial& trial) {
  const Plan& plan = trial.plan();
  if (plan.live == 0) return silent("there are no live tokens");
  if (std::string why = undividable(plan); !why.empty()) return silent(why);
  Relaunches relaunches("padding_rows", trial);
  if (!relaunches.begin()) return relaunches.findings();
  const auto option = plan.value.contract.find("padding_positions");
  const bool anywhere = option != plan.value.contract.end() && option->second == "any";
  const std::vector<std::int64_t> rows = rows_from(0, plan.live);
  std::string stray;
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
    const std::string words = "with padding of slots " + slots + " and values " + values;
    relaunches.add([&]() -> Relaunch { return {derive(trial.setting(), padded, rows, trial.bench().memory), rows, words}; });
    // What padding does to no row is seen by the write set alone: a record of its own, or one below the cache.
    if (!stray.empty() || writes_astray(trial.judged()).has_value()) return;
    try {
      if (const auto where = writes_astray(trial.judge_other(padded))) stray = *where + " " + words;
    } catch (const InputError&) {
      // A rule of the op does not have it; the launch above says so.
    }
  };
  with("-1", "zero", "normal:1");
  with("int32_min", "in_range", "nan");
  with("int64_min", "zero", "saturating");
  with("-block", anywhere ? "stale" : "in_range", "nan");
  LawFindings findings = relaunches.findings();
  if (findings.detail.empty()) findings.detail = stray;
  if (!stray.empty()) findings.silent.clear();
  return findings;
}

}  // namespace

Law padding_rows() {
  return {"padding_rows", "Whatever padding rows hold, as slots, positions and values, reaches no live row, and no cache.",
          false, check_padding_rows};
}

}  // namespace dcpcheck::laws
