#include "properties/law.hpp"

namespace dcpcheck::laws {

Law ranks_agree() {
  return {"ranks_agree", "Outputs by token are the same on every rank, whoever owns the token's cache row.", false,
          [](Trial& trial) {
            LawFindings findings;
            const Plan& plan = trial.plan();
            if (plan.value.geometry.tp < 2) {
              findings.silent = "there is one rank";
              return findings;
            }
            const Observation& seen = trial.observed();
            if (!seen.refused.empty()) {
              findings.silent = "the launch was refused: " + seen.refused;
              return findings;
            }
            Differences differences("ranks_agree", plan);
            for (const TensorPlan& tensor : plan.tensors) {
              // Each rank has rows of its own in its caches.
              if (tensor.role != Role::out || tensor.spec->rows != Rows::live) continue;
              const RowsLeft& first = seen.ranks.front().at(tensor.name);
              for (std::size_t rank = 1; rank < seen.ranks.size(); ++rank) {
                differences.compare_rows(tensor.name, rank, seen.ranks[rank].at(tensor.name), first, "on rank 0");
              }
            }
            findings.compared = differences.compared();
            findings.violations = differences.take();
            return findings;
          }};
}

}  // namespace dcpcheck::laws
