#include "properties/law.hpp"

namespace dcpcheck::laws {
namespace {

bool is_of_values(Reason reason) {
  return reason == Reason::inadmissible || reason == Reason::uninitialised_read || reason == Reason::race;
}

}  // namespace

Law admissible_values() {
  return {"admissible_values",
          "Every element has a value that a right kernel can give, the same whatever lay in memory before.", true,
          [](Trial& trial) {
            LawFindings findings;
            const Verdict& verdict = trial.judged().verdict;
            if (verdict.status == Status::skipped) {
              findings.silent = verdict.detail;
              return findings;
            }
            findings.compared = verdict.compared;
            for (const Violation& violation : verdict.violations) {
              if (is_of_values(violation.reason)) findings.violations.push_back(violation);
            }
            return findings;
          }};
}

}  // namespace dcpcheck::laws
