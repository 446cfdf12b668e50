#include "properties/law.hpp"

namespace dcpcheck::laws {
namespace {

bool is_of_writing(Reason reason) {
  return reason == Reason::unwritten || reason == Reason::stray_write || reason == Reason::guard ||
         reason == Reason::input_changed;
}

// The launch itself went wrong; by `guard`, where no violation has it, next to an input of a kernel's process.
bool is_of_launching(Reason reason) {
  return reason == Reason::launch_refused || reason == Reason::floating_point_mode || reason == Reason::guard ||
         reason == Reason::process_ended || reason == Reason::timed_out || reason == Reason::bad_answer;
}

}  // namespace

Law write_set() {
  return {"write_set", "The launch is accepted, writes all that it must write, and nothing that it must not.", true,
          [](Trial& trial) {
            LawFindings findings;
            const Verdict& verdict = trial.judged().verdict;
            if (verdict.status == Status::skipped) {
              findings.silent = verdict.detail;
              return findings;
            }
            findings.compared = verdict.must_write + verdict.guarded;
            if (is_of_launching(verdict.reason)) findings.detail = verdict.detail;
            for (const Violation& violation : verdict.violations) {
              if (is_of_writing(violation.reason)) findings.violations.push_back(violation);
            }
            return findings;
          }};
}

}  // namespace dcpcheck::laws
