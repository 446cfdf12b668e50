#include "harness/core/error.hpp"

#include <cerrno>
#include <system_error>

namespace dcpcheck {

void throw_errno(const std::string& what) {
  const int number = errno;  // before anything allocates
  // strerror's text; strerror itself may share its buffer between threads.
  throw HarnessError(what + ": " + std::generic_category().message(number));
}

}  // namespace dcpcheck
