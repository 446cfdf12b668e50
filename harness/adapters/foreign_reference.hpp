// A reference of somebody else's, for an op of their own: spoken to as a kernel is.
#pragma once

#include "harness/exec/kernel.hpp"
#include "harness/oracle/admissible.hpp"

namespace dcpcheck {

// What `kernel` tells to be right of `op`. Throws InputError where it is no kernel of that op, or does not run on the host.
// It is launched with the inputs of a rank and, in the place of each
// output and each field of a written cache, with what op.json's "told" names there (see Told), all dense and in rows as
// Admissible has them: axis 0 of an output, the launch's tokens for a cache.
//
// The reference throws HarnessError, in a sentence that names the output and its element, where the kernel declines or fails,
// or tells what cannot be: an error that is negative or no number, a low above its high.
Reference reference_of(const Kernel& kernel, const Op& op);

}  // namespace dcpcheck
