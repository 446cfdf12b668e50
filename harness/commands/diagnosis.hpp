// What the violations of a case have in common, told in the words of decode context parallelism.
#pragma once

#include <string>

#include "harness/core/plan.hpp"
#include "harness/core/verdict.hpp"

namespace dcpcheck {

// One sentence where the pattern is a known one: rows left unwritten exactly where a rank's slot is negative (the token
// belongs to another rank), or cache bytes written where slot -1 would lie. Empty where it is none of these.
std::string diagnose(const Plan& plan, const Verdict& verdict);

}  // namespace dcpcheck
