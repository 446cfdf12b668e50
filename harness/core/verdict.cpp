#include "harness/core/verdict.hpp"

namespace dcpcheck {

std::string_view name_of(Status status) {
  switch (status) {
    case Status::pass: return "pass";
    case Status::fail: return "fail";
    case Status::crash: return "crash";
    case Status::hang: return "hang";
    case Status::flaky: return "flaky";
    case Status::skipped: return "skipped";
    case Status::inconclusive: return "inconclusive";
    case Status::not_run: return "not-run";
  }
  return "?";
}

std::string_view name_of(Reason reason) {
  switch (reason) {
    case Reason::none: return "none";
    case Reason::unwritten: return "unwritten";
    case Reason::stray_write: return "stray-write";
    case Reason::guard: return "guard";
    case Reason::input_changed: return "input-changed";
    case Reason::inadmissible: return "inadmissible";
    case Reason::uninitialised_read: return "uninitialised-read";
    case Reason::race: return "race";
    case Reason::launch_refused: return "launch-refused";
    case Reason::floating_point_mode: return "floating-point-mode";
    case Reason::process_ended: return "process-ended";
    case Reason::timed_out: return "timed-out";
    case Reason::bad_answer: return "bad-answer";
    case Reason::law: return "law";
    case Reason::nothing_compared: return "nothing-compared";
  }
  return "?";
}

std::vector<std::pair<std::int64_t, std::int64_t>> to_ranges(const std::vector<std::int64_t>& numbers) {
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  for (const std::int64_t number : numbers) {
    if (!runs.empty() && number == runs.back().second + 1) {
      runs.back().second = number;
    } else {
      runs.emplace_back(number, number);
    }
  }
  return runs;
}

}  // namespace dcpcheck
