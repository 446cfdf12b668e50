// What the probe asks of a kernel besides contract options: the conditions on cases that a kernel may well require.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/core/case.hpp"

namespace dcpcheck {

struct Question {
  Requirement that;
  // Each changes a case that breaks it so that it holds, and as little else as can be.
  std::vector<std::function<void(Case&)>> mends;
  // Whether a kernel that requires it fails in every case of live tokens that breaks it, as one does that does not know an
  // output. Else in many of them: a wrong stride shows in a record past the first block only.
  bool always = false;
};

// From the weakest to the strongest of each kind. None is about what tokens, ranks, slots or values there are: a kernel that
// fails for those is wrong.
std::vector<Question> questions_of(const Op& op);

}  // namespace dcpcheck
