#include "properties/hunt.hpp"

#include <algorithm>
#include <utility>

#include "harness/core/error.hpp"
#include "properties/shrink.hpp"

namespace dcpcheck {
namespace {

bool reports(const LawFindings& findings) {
  return findings.silent.empty() && (!findings.violations.empty() || !findings.detail.empty());
}

// Whether what a law reports of a fault is what the fault is said to be caught for.
bool for_its_reason(const Kernel& kernel, const LawFindings& findings) {
  // What has no coordinates is the launch's own: write_set has it, and of a fault it is a refusal.
  if (kernel.reason.empty() || kernel.reason == name_of(Reason::law) || findings.violations.empty()) return true;
  return std::any_of(findings.violations.begin(), findings.violations.end(),
                     [&](const Violation& violation) { return name_of(violation.reason) == kernel.reason; });
}

void stop_if_interrupted(const Workbench& bench) {
  if (bench.interrupted != nullptr && bench.interrupted->load() != 0) throw Interrupted(bench.interrupted->load());
}

}  // namespace

std::vector<std::string> reporting(Trial& trial, Verdict* verdict) {
  std::vector<std::string> names;
  for (const Law& law : all_laws()) {
    LawFindings findings = apply(law, trial);
    if (!reports(findings)) continue;
    if (names.empty() && verdict != nullptr) *verdict = verdict_of(law, std::move(findings));
    names.push_back(law.name);
  }
  return names;
}

std::optional<Catch> hunt(const Workbench& bench, const Kernel& kernel, const Generator& generator, std::uint64_t seed,
                          std::uint64_t budget) {
  // A law launches a case several times: all of them are asked of the case that is caught, not of all that are not.
  std::vector<const Law*> watched;
  for (const Law& law : all_laws()) {
    if (kernel.caught_by.empty() || law.name == kernel.caught_by) watched.push_back(&law);
  }
  for (std::uint64_t index = 0; index < budget; ++index) {
    stop_if_interrupted(bench);
    Catch found;
    found.value = generator(seed, index);
    found.cases = index + 1;
    Trial trial(bench, generator.op(), kernel, found.value);
    const bool seen = std::any_of(watched.begin(), watched.end(), [&](const Law* law) {
      LawFindings findings = apply(*law, trial);
      if (!reports(findings) || !for_its_reason(kernel, findings)) return false;
      found.verdict = verdict_of(*law, std::move(findings));
      return true;
    });
    if (!seen) continue;
    found.by = reporting(trial);
    return found;
  }
  return std::nullopt;
}

Case shrink(const Workbench& bench, const Op& op, const Kernel& kernel, const Case& value, const std::string& by,
            int evaluations) {
  const Law* const law = find_law(by);
  if (law == nullptr) throw HarnessError("there is no law " + by);
  return smallest_failing(
      op, value, bench.memory, {}, [&] { return evaluations-- <= 0; },
      [&](const Case& candidate) {
        stop_if_interrupted(bench);
        Trial trial(bench, op, kernel, candidate);
        const LawFindings findings = apply(*law, trial);
        return reports(findings) && (kernel.caught_by != by || for_its_reason(kernel, findings));
      });
}

}  // namespace dcpcheck
