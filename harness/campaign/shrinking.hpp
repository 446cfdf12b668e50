// Making a case small on which a kernel fails, whoever evaluates it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/campaign/answer.hpp"
#include "harness/core/case.hpp"

namespace dcpcheck {

// Evaluates cases for shrinking and for telling what flickers: the checks that came of them.
using Evaluate = std::function<std::vector<Check>(const Case&)>;

struct Shrunk {
  Case value;
  Check check;
  std::int64_t evaluations = 0;
  std::string stopped;  // see Finding
};

// A case no larger than `value` of which `evaluate` still gives a check of the signature's law, reason and buffer, and of which
// nothing more can be taken away, or as small as the budget made it. `check` is `value`'s.
Shrunk shrink_by(const Op& op, const Case& value, const Check& check, const Evaluate& evaluate, std::int64_t evaluations,
                 std::chrono::seconds time, std::int64_t memory, const std::function<void(const Case&)>& valid);

// Whether both are the same failure: law, reason and buffer.
bool same_failure(const Check& a, const Check& b);

}  // namespace dcpcheck
