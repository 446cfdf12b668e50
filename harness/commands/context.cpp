#include "harness/commands/context.hpp"

#include "harness/core/error.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {

void Context::check_interrupted() const {
  if (const int signal = interrupted == nullptr ? 0 : interrupted->load(); signal != 0) throw Interrupted(signal);
}

const Op& op_named(const Context& context, const std::string& name) {
  const auto found = context.ops.find(name);
  if (found != context.ops.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [each, op] : context.ops) known.push_back(each);
  const std::string near = text::nearest(name, known);
  throw InputError("there is no op '" + text::printable(name) + "'" +
                   (near.empty() ? "; dcpcheck ops shows them" : ": did you mean " + near + "?"));
}

}  // namespace dcpcheck
