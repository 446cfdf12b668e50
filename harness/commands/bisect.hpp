// What `bisect` and `bisect-step` share: their options, and what those ask of each revision.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/bisect/search.hpp"
#include "harness/bisect/step.hpp"
#include "harness/commands/context.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/verb.hpp"

namespace dcpcheck {

std::vector<OptionSpec> bisect_options();

// What the options ask, without the cases. Throws InputError.
StepOptions step_options(const Arguments& arguments, Context& context, const RunSettings& settings);

// The cases that revisions are held to: of --case, of --golden, or else of the op of the kernel, which `lane` says where it
// is called: --fuzz's generated ones, or the scenarios that are built in. Throws InputError where there are none.
std::vector<BisectCase> bisect_cases(const Arguments& arguments, Context& context, const RunSettings& settings,
                                     const std::function<Lane()>& lane);

// What was found, for a person and as a document. `places`: what `compare` says of the last good and the first bad, or why it
// says nothing.
struct BisectReport {
  BisectEnd end;
  std::vector<BisectCase> cases;
  json::Value compared;  // null: there is none
  std::string why_not;   // then
  std::string replay;    // the line that shows the failure once the first bad commit is checked out and built
};
std::string render(const BisectReport& report);
json::Value to_json(const BisectReport& report);

}  // namespace dcpcheck
