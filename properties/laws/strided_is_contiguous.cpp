#include "properties/laws/relaunch.hpp"

namespace dcpcheck::laws {
namespace {

LawFindings check_strided_is_contiguous(Trial& trial) {
  const Plan& plan = trial.plan();
  const std::vector<std::int64_t> rows = rows_from(0, plan.live);
  Relaunches relaunches("strided_is_contiguous", trial);
  if (!relaunches.begin()) return relaunches.findings();
  Case other = plan.value;
  const bool dense = other.layout.empty();
  other.layout.clear();
  if (dense) {
    for (const TensorPlan& tensor : plan.tensors) {
      if (tensor.spec->strided && tensor.in_place_of.empty() && tensor.name == tensor.spec->name)
        other.layout[tensor.name] = {tensor.columns() + 24, 8};
    }
    if (other.layout.empty()) return silent("no tensor of the case can be strided");
  }
  const Setting setting = derive(trial.setting(), other, rows, trial.bench().memory);
  relaunches.add([&]() -> Relaunch { return {setting, rows, dense ? "from slices of wider rows" : "from contiguous rows"}; });
  return relaunches.findings();
}

}  // namespace

Law strided_is_contiguous() {
  return {"strided_is_contiguous", "Rows that lie apart, or start at an offset, give what contiguous ones give.", false,
          check_strided_is_contiguous};
}

}  // namespace dcpcheck::laws
