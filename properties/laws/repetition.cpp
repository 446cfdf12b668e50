#include "properties/laws/relaunch.hpp"

namespace dcpcheck::laws {
namespace {

constexpr int kTimes = 6;

LawFindings check_repetition(Trial& trial) {
  LawFindings findings;
  const Workbench& bench = trial.bench();
  const std::vector<Observation> seen = observe_again(trial.setting(), trial.kernel(), *bench.backend, bench.threads, kTimes);
  Differences differences("repetition", trial.plan());
  for (std::size_t time = 1; time < seen.size(); ++time) {
    if (!seen.front().refused.empty()) return silent("the launch was refused: " + seen.front().refused);
    if (!seen[time].refused.empty()) {
      findings.detail = "launch " + std::to_string(time + 1) + " was refused, the first was not: " + seen[time].refused;
      return findings;
    }
    for (std::size_t rank = 0; rank < seen[time].ranks.size(); ++rank) {
      for (const auto& [buffer, rows] : seen[time].ranks[rank]) {
        differences.compare_rows(buffer, rank, rows, seen.front().ranks[rank].at(buffer),
                                 "in the first launch; this was launch " + std::to_string(time + 1));
      }
    }
  }
  findings.compared = differences.compared();
  findings.violations = differences.take();
  return findings;
}

}  // namespace

Law repetition() {
  return {"repetition", "The same launch, over and over on the same memory, leaves the same.", false, check_repetition};
}

}  // namespace dcpcheck::laws
