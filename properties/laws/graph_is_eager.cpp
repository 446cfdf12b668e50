#include "properties/laws/relaunch.hpp"

namespace dcpcheck::laws {
namespace {

LawFindings check_graph_is_eager(Trial& trial) {
  // There are no graphs on the host: its own kernels are told of one that there would be, others are not.
  if (trial.bench().backend->name() == "host" && trial.kernel().declared) return silent("there are no graphs on the host");
  Relaunches relaunches("graph_is_eager", trial);
  if (!relaunches.begin()) return relaunches.findings();
  Setting other = trial.setting();
  other.plan.value.graph = !other.plan.value.graph;
  const bool eager = !other.plan.value.graph;
  std::int64_t most = trial.plan().live;
  for (const TensorPlan& tensor : trial.plan().tensors) {
    if (tensor.role == Role::out) most = std::max(most, tensor.rows());
  }
  relaunches.add([&]() -> Relaunch {
    return {std::move(other), rows_from(0, most), eager ? "launched eagerly" : "replayed from a graph"};
  });
  return relaunches.findings();
}

}  // namespace

Law graph_is_eager() {
  return {"graph_is_eager", "A replayed CUDA graph leaves what a launch leaves.", false, check_graph_is_eager};
}

}  // namespace dcpcheck::laws
