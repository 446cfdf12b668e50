#include <filesystem>
#include <optional>

#include "harness/bisect/worktree.hpp"
#include "harness/commands/bisect.hpp"
#include "harness/core/error.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck::verbs {
namespace {

namespace fs = std::filesystem;

// As `git bisect run` takes them. Whatever throws ends its search: main.cpp.
constexpr int kGood = 0, kBad = 1, kSkip = 125;

int run_bisect_step(const Arguments& arguments, Context& context) {
  const RunSettings settings = run_settings(arguments);
  StepOptions options = step_options(arguments, context, settings);
  const fs::path folder = git(fs::current_path().string(), {"rev-parse", "--show-toplevel"}, context.interrupted);
  const auto told = [&](Standing standing, const std::string& why) {
    *context.out << name_of(standing) << ": " << text::printable(why) << "\n";
    return standing == Standing::good ? kGood : standing == Standing::bad ? kBad : kSkip;
  };
  if (const std::string why = build(options, folder, ""); !why.empty()) return told(Standing::skip, why);
  options.built = true;
  check_harness(options);
  options.self_test = false;  // it has been done
  std::string unloaded;
  const std::optional<Lane> lane = lane_in(options, folder, unloaded);
  if (!lane) return told(Standing::skip, unloaded);
  options.cases = bisect_cases(arguments, context, settings, [&] { return *lane; });
  const StepResult result = step(options, folder, "");
  for (const std::string& sentence : result.what)
    *context.out << text::wrap("  " + text::printable(sentence), text::kColumns, 4);
  return told(result.standing, result.why);
}

}  // namespace

Verb bisect_step() {
  return {
      "bisect-step",
      "Answer for the checkout here, as `git bisect run` wants it",
      "For a bisection of your own: `git bisect run dcpcheck bisect-step …` in a worktree. Exits 0 (good), 1 (bad), 125 (no "
      "answer: it does not build, has no such kernel, or is not for the case), and with 128 where dcpcheck fails or its "
      "options "
      "are wrong, which ends the bisection.",
      {},
      bisect_options(),
      run_bisect_step};
}

}  // namespace dcpcheck::verbs
