#include "harness/campaign/shrinking.hpp"

#include <algorithm>
#include <utility>

#include "properties/shrink.hpp"

namespace dcpcheck {

bool same_failure(const Check& a, const Check& b) {
  return is_finding(a.status) == is_finding(b.status) && a.law == b.law && a.reason == b.reason && a.buffer == b.buffer;
}

Shrunk shrink_by(const Op& op, const Case& value, const Check& check, const Evaluate& evaluate, std::int64_t evaluations,
                 std::chrono::seconds time, std::int64_t memory, const std::function<void(const Case&)>& valid) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  Shrunk shrunk{value, check, 0, {}};
  const auto enough = [&] {
    if (shrunk.evaluations >= evaluations) {
      shrunk.stopped = "after " + std::to_string(evaluations) + " evaluations";
    } else if (std::chrono::steady_clock::now() >= deadline) {
      shrunk.stopped = "after " + std::to_string(time.count()) + " s";
    }
    return !shrunk.stopped.empty();
  };
  const auto fails = [&](const Case& candidate) {
    ++shrunk.evaluations;
    const std::vector<Check> checks = evaluate(candidate);
    const auto same = std::find_if(checks.begin(), checks.end(), [&](const Check& one) { return same_failure(one, check); });
    if (same == checks.end()) return false;
    shrunk.check = *same;
    return true;
  };
  shrunk.value = smallest_failing(op, value, memory, valid, enough, fails);
  return shrunk;
}

}  // namespace dcpcheck
