// What a kernel from elsewhere says of itself: which cases of its op it is for.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

// The op that a kernel from elsewhere says it is of. Throws InputError, in a sentence that begins with `source`, where there is
// none of that name, or it is a pipeline.
const Op& op_of_kernel(const std::string& name, const Ops& ops, const std::string& source);

// Throws InputError where it names what `op` does not have; the sentence begins with `source`.
void check_declaration(const Declaration& declaration, const Op& op, const std::string& source);

// Every name that a condition on cases of `op` may ask for, but for those of cache groups of any name (op.caches {"*"}).
std::vector<std::string> terms_of(const Op& op);
// Whether `name` is one of `terms`, or one of a cache group of any name.
bool is_term(const Op& op, const std::vector<std::string>& terms, const std::string& name);
// What follows the "<group>." of a cache group's terms.
std::span<const std::string_view> terms_of_group();

// Why the case is not for the kernel; "" where it is.
std::string why_not(const Declaration& declaration, const Plan& plan);

}  // namespace dcpcheck
