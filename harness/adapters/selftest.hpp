// The start-up check that this build, on this machine, computes the bits that digests are made of.
#pragma once

#include <string>
#include <vector>

#include "harness/exec/backend.hpp"
#include "harness/exec/kernel.hpp"
#include "reference/builtin_ops.hpp"

namespace dcpcheck {

// Runs a fixed set of rows through the built-in fused_norm_rope on `backend` and compares the digest with the one in
// the source. Returns "" where they agree, else a sentence: contraction, fast-math, flush-to-zero or a broken compiler
// would each change it, and no digest of such a build could be compared with another's.
std::string self_test(Backend& backend, const std::map<std::string, BuiltinOp, std::less<>>& ops,
                      const std::vector<Kernel>& kernels);

}  // namespace dcpcheck
