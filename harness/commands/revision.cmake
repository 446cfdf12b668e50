# cmake -D OUTPUT=… -D SOURCE_DIR=… -D VERSION=… -P revision.cmake: the version and git revision as a C++ source. Runs on
# every build, and touches the file only where the revision is another.
set(revision "unknown")
find_program(GIT git)
if(GIT AND EXISTS "${SOURCE_DIR}/.git")
  # The folder may belong to somebody else, as in a container: only its revision is read.
  execute_process(COMMAND "${GIT}" -c "safe.directory=*" describe --always --dirty --abbrev=12 --exclude=*
    WORKING_DIRECTORY "${SOURCE_DIR}" OUTPUT_VARIABLE described RESULT_VARIABLE status ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(status EQUAL 0 AND described MATCHES "^[0-9a-z-]+$")
    set(revision "${described}")
  endif()
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[
// Made by the build.
#include "harness/commands/context.hpp"

namespace dcpcheck {

ToolInfo tool_info() { return {"@VERSION@", "@revision@"}; }

}  // namespace dcpcheck
]])
