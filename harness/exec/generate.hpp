// Runs `generate`: the model in miniature over the launches of the ops that it is made of, each judged against its
// reference on the inputs that it was really given. Two runs go side by side, on poison A and on poison B; what one launch
// leaves is what the next one reads.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "harness/exec/runner.hpp"

namespace dcpcheck {

// What stands for one op of a pipeline.
struct Part {
  const Op* op = nullptr;
  const Reference* reference = nullptr;
  const Kernel* kernel = nullptr;
};

// By the op's name; one for each of Op::pipeline.
using Parts = std::map<std::string, Part, std::less<>>;

// Throws InputError where a launch of the case would break a rule of its op, or needs more than `budget` bytes. `ops` has
// those of the pipeline.
void check_generate(const Ops& ops, const Op& op, const Case& value, std::int64_t budget, const std::string& source);

// Answers of references that were worked out before: many launches of a scenario are the same for every kernel.
class ReferenceMemory;

// `prepared` is of the case of `generate`. Never throws for what a kernel does: where no launch could follow, as after slots
// that lie outside their cache, the verdict says at which stage it ended. Throws HarnessError where the backend itself fails.
CaseResult run_generate(const Prepared& prepared, const Parts& parts, Backend& backend, const RunOptions& options,
                        ReferenceMemory& memory);

}  // namespace dcpcheck
