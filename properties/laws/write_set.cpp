#include "properties/law.hpp"

namespace dcpcheck::laws {
namespace {

bool is_of_writing(Reason reason) {
  return reason == Reason::unwritten || reason == Reason::stray_write || reason == Reason::guard ||
         reason == Reason::input_changed || reason == Reason::launch_refused;
}

}  // namespace

Law write_set() {
  return {"write_set", "The launch is accepted, writes all that it must write, and nothing that it must not.", true,
          [](Trial& trial) {
            LawFindings findings;
            const Verdict& verdict = trial.judged().verdict;
            findings.compared = verdict.must_write + verdict.guarded;
            if (verdict.reason == Reason::launch_refused) findings.detail = verdict.detail;
            for (const Violation& violation : verdict.violations) {
              if (is_of_writing(violation.reason)) findings.violations.push_back(violation);
            }
            return findings;
          }};
}

}  // namespace dcpcheck::laws
