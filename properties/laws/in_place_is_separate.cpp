#include <algorithm>
#include <set>

#include "properties/facts.hpp"
#include "properties/laws/relaunch.hpp"

namespace dcpcheck::laws {
namespace {

// The contract options that say whether outputs lie on inputs.
std::set<std::string> deciding_options(const Plan& plan) {
  constexpr std::string_view kPrefix = "option.";
  std::set<std::string> options;
  for (const TensorPlan& tensor : plan.tensors) {
    if (tensor.spec->in_place_of.empty()) continue;
    for (const std::string& name : names_in(tensor.spec->in_place_when)) {
      if (name.starts_with(kPrefix)) options.insert(name.substr(kPrefix.size()));
    }
  }
  return options;
}

LawFindings check_in_place_is_separate(Trial& trial) {
  const Plan& plan = trial.plan();
  const std::set<std::string> options = deciding_options(plan);
  if (options.empty()) return silent("no output of the case can lie on an input");
  Relaunches relaunches("in_place_is_separate", trial);
  if (!relaunches.begin()) return relaunches.findings();
  const auto lies_on_input = [](const Plan& where) {
    return std::any_of(where.tensors.begin(), where.tensors.end(), [](const TensorPlan& t) { return !t.in_place_of.empty(); });
  };
  const std::vector<std::int64_t> rows = rows_from(0, plan.live);
  for (const std::string& name : options) {
    for (const std::string& choice : plan.op->option(name)->values) {
      Case other = plan.value;
      if (std::exchange(other.contract.at(name), choice) == choice) continue;
      // In place, an output has the rows of its input.
      for (const TensorPlan& tensor : plan.tensors) {
        if (!tensor.spec->in_place_of.empty()) other.layout.erase(tensor.name);
      }
      Setting setting = derive(trial.setting(), other, rows, trial.bench().memory);
      if (lies_on_input(setting.plan) == lies_on_input(plan)) continue;
      relaunches.add([&]() -> Relaunch {
        return {std::move(setting), rows, lies_on_input(plan) ? "with memory of its own" : "in place"};
      });
    }
  }
  return relaunches.findings();
}

}  // namespace

Law in_place_is_separate() {
  return {"in_place_is_separate", "Outputs that lie on their inputs hold what outputs with memory of their own hold.", false,
          check_in_place_is_separate};
}

}  // namespace dcpcheck::laws
