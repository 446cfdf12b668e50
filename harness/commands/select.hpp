// Which kernels a case is run on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/commands/cases.hpp"
#include "harness/commands/context.hpp"
#include "harness/exec/workbench.hpp"
#include "properties/law.hpp"

namespace dcpcheck {

// The kernels that `specs` ("builtin:<op>[@fault]", "<op>[@fault]", "@fault": of every op that has it; "lib:<file.so>";
// "exec:<command>"; each also with "<op>=" before it) name, in the order given. Those from elsewhere are loaded and put behind
// context.kernels, so nothing may point into it yet. Throws InputError where a spec names none.
std::vector<const Kernel*> select_kernels(Context& context, const std::vector<std::string>& specs);

// The law that --law names. Throws InputError, with the nearest name, where there is none.
const Law& law_named(const std::string& name);

// By op: the fixed kernel, then those whose fault ("<fault>", of a pipeline also "<op>@<fault>") is named in a case's
// `expect`, by first mention.
std::map<std::string, std::vector<const Kernel*>> expected_kernels(const std::vector<Kernel>& kernels,
                                                                   const std::vector<NamedCase>& cases);

}  // namespace dcpcheck
