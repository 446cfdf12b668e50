#include "harness/commands/context.hpp"

#include "harness/core/error.hpp"

namespace dcpcheck {

void Context::check_interrupted() const {
  if (const int signal = interrupted == nullptr ? 0 : interrupted->load(); signal != 0) throw Interrupted(signal);
}

}  // namespace dcpcheck
