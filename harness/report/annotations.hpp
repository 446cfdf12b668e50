// What is not as expected, as GitHub's workflow commands: such a line in a job's log is shown on the page of the run.
#pragma once

#include <string>

#include "harness/report/report.hpp"

namespace dcpcheck {

// A line "::error title=…::…" for each result and relation that is not as expected, "::warning …" for what came to no answer;
// at most ten of each, as GitHub shows no more of a step.
std::string annotations(const Report& report);

}  // namespace dcpcheck
