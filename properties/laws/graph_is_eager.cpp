#include "properties/laws/relaunch.hpp"

namespace dcpcheck::laws {
namespace {

LawFindings check(Trial& trial) {
  Relaunches relaunches("graph_is_eager", trial);
  if (!relaunches.begin()) return relaunches.findings();
  Setting other = trial.setting();
  other.plan.value.graph = !other.plan.value.graph;
  const bool eager = !other.plan.value.graph;
  std::int64_t most = trial.plan().live;
  for (const TensorPlan& tensor : trial.plan().tensors) {
    if (tensor.role == Role::out) most = std::max(most, tensor.rows());
  }
  relaunches.add({std::move(other), rows_from(0, most), eager ? "launched eagerly" : "replayed from a graph"});
  return relaunches.findings();
}

}  // namespace

Law graph_is_eager() { return {"graph_is_eager", "A replayed CUDA graph leaves what a launch leaves.", false, check}; }

}  // namespace dcpcheck::laws
