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
  std::string name, doc;    // for people
  std::string preset = {};  // the op's preset that it follows, where `options` says nothing else; empty: none
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

// Fills in what the preset that the declaration names, if any, says: the options that it leaves open, and what the preset
// requires, before its own. Throws InputError that lists the presets there are where `op` has none of that name; the sentence
// begins with `source`.
void apply_preset(Declaration& declaration, const Op& op, const std::string& source);

// Throws InputError where an expression of `op` names what its cases do not have, or can be worked out without a case and comes
// to nothing; the sentence begins with `source`.
void check_expressions(const Op& op, const std::string& source);

// Throws InputError where it names what `op` does not have; the sentence begins with `source`.
void check_declaration(const Declaration& declaration, const Op& op, const std::string& source);

// Every name that an expression over cases of `op` may ask for, but for those of cache groups of any name (op.caches {"*"}).
std::vector<std::string> terms_of(const Op& op);
// What a requirement may ask for besides: "<tensor>.dense", 1 where the tensor's rows follow one another from its start on, and
// where the case does not have it.
std::vector<std::string> layout_terms_of(const Op& op);
// The environment of the plan with these.
Environment with_layout(const Plan& plan);
// Whether `name` is one of `terms`, or one of a cache group of any name.
bool is_term(const Op& op, const std::vector<std::string>& terms, const std::string& name);
// What follows the "<group>." of a cache group's terms.
std::span<const std::string_view> terms_of_group();

// Why the case is not for the kernel; "" where it is.
std::string why_not(const Declaration& declaration, const Plan& plan);

}  // namespace dcpcheck
