// Ops of a user's own, from a folder (--ops DIR).
#pragma once

#include <string>

#include "harness/commands/context.hpp"

namespace dcpcheck {

// Adds the op of each *.op.json of `folder`, and its reference, to what the verbs work with. What the op's `reference` names is
// sought from that folder. Throws InputError where the folder has none, one of them is no op or has no reference, or there is
// an op of that name; then nothing is added.
void add_ops(Context& context, const std::string& folder);

}  // namespace dcpcheck
