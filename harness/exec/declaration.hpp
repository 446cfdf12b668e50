// What a kernel from elsewhere says of itself: which cases of its op it is for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/plan.hpp"

namespace dcpcheck {

struct Declaration {
  std::string name, doc;  // for people
  // By contract option: the values that it follows. Of an option that is left out, the default alone.
  std::map<std::string, std::vector<std::string>> options;
  // The tensors that it knows: a case that has others is not for it. Absent: all of its op.
  std::optional<std::vector<std::string>> tensors;
  std::vector<Requirement> requirements;  // what must hold of a case; `say` may be empty
  std::string source = {};                // the file that it was loaded from, where it says so
};

// Throws InputError where it names what `op` does not have; the sentence begins with `source`.
void check_declaration(const Declaration& declaration, const Op& op, const std::string& source);

// Why the case is not for the kernel; "" where it is.
std::string why_not(const Declaration& declaration, const Plan& plan);

}  // namespace dcpcheck
