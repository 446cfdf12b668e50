// Smaller cases: one pure function along the axes in which a case can be smaller, for cases that were drawn and for cases
// that were read from a file alike.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "harness/core/case.hpp"

namespace dcpcheck {

// How much there is to a case: requests, tokens, ranks, groups and blocks, what params, contract, layouts, recipes and
// the seed have beyond the plainest. A sum of such parts, each at least 0, so going down it ends.
std::uint64_t size_of_case(const Op& op, const Case& value);

// The smaller cases of `value`: each valid (make_plan takes it, within `memory` bytes) and each less by size_of_case, so
// that shrinking ends; those first that are the smallest. Empty where nothing can be taken away. `value` need not be valid.
// `check` as GenerateOptions has it.
std::vector<Case> shrinks(const Op& op, const Case& value, std::int64_t memory = std::int64_t{4} << 30,
                          const std::function<void(const Case&)>& check = {});

// A case no larger than `value` that `fails`, as `value` does, and of which nothing more can be taken away, or as small as it
// was when `enough`, asked before each try, said so. `memory` and `check` as in shrinks().
Case smallest_failing(const Op& op, const Case& value, std::int64_t memory, const std::function<void(const Case&)>& check,
                      const std::function<bool()>& enough, const std::function<bool(const Case&)>& fails);

// What shrinks() chooses from: some of these break a rule of the op's.
std::vector<Case> shrink_proposals(const Op& op, const Case& value);

}  // namespace dcpcheck
