// A case as part of a message: all its fields as they are. A case file says less, as a pipeline's launches have fields that
// their ops do not know.
#pragma once

#include "harness/core/case.hpp"
#include "harness/exec/wire.hpp"

namespace dcpcheck {

void write_case(MessageWriter& message, const Case& value);
// Throws HarnessError where the message does not go on with one.
Case read_case(MessageReader& message);

}  // namespace dcpcheck
