// Which elements rest on memory that nobody wrote. Where a launch's inputs differ between a run on poison A and one on
// poison B, the reference is asked of both: an element that it answers alike does not depend on what differs, and is judged;
// any other one is tainted: what is wrong with it was wrong before the launch.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/oracle/admissible.hpp"

namespace dcpcheck {

// By the names of Expected, an entry an element (row * columns + column); names without a tainted element are left out.
using Taint = std::map<std::string, std::vector<bool>, std::less<>>;

// Elements of which `a` and `b`, both of one launch, do not say the same; those of rows that are not known, and those of
// which either says that anything may come out, are tainted too.
Taint taint_between(const Expected& a, const Expected& b);

}  // namespace dcpcheck
