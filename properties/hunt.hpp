// Looks for a case on which a kernel shows what is wrong with it, by all laws of its op, and makes that case small.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "properties/generators.hpp"
#include "properties/law.hpp"

namespace dcpcheck {

struct Catch {
  std::uint64_t cases = 0;  // that it took, this one counted in
  Case value;
  std::vector<std::string> by;  // the laws that report, by name
  Verdict verdict;              // by the law that it was caught by
};

// Draws the cases of `seed` in their order and stops at the first on which a law reports; absent where none of `budget` did. A
// fault that says what it is caught by and for (Kernel::caught_by, reason) is caught where that law reports that reason.
// Throws HarnessError where the backend fails, Interrupted once a signal came.
std::optional<Catch> hunt(const Workbench& bench, const Kernel& kernel, const Generator& generator, std::uint64_t seed,
                          std::uint64_t budget);

// The laws that report on the trial's case; empty: the kernel passes. `verdict`: by the first of them.
std::vector<std::string> reporting(Trial& trial, Verdict* verdict = nullptr);

// A case no larger than `value` on which the law `by` still reports, of which nothing more can be taken away, or as small as
// `evaluations` tries made it.
Case shrink(const Workbench& bench, const Op& op, const Kernel& kernel, const Case& value, const std::string& by,
            int evaluations);

}  // namespace dcpcheck
