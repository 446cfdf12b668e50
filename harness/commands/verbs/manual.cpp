#include "harness/commands/manual.hpp"

#include "harness/commands/context.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/verb.hpp"
#include "harness/core/error.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck::verbs {
namespace {

int run_manual(const Arguments& arguments, Context& context) {
  const std::string& kind = arguments.operands.front();
  if (kind == "man") {
    *context.out << man_page(all_verbs(), context.tool.version);
  } else if (kind == "bash") {
    *context.out << bash_completion(all_verbs());
  } else {
    throw InputError("manual takes man or bash, not '" + text::printable(kind) + "'");
  }
  flush_or_throw(*context.out, "stdout");
  return 0;
}

}  // namespace

Verb manual() {
  return {"manual",
          "Write the manual page, or what completes words in bash",
          "cmake --install puts both where they belong.",
          {"man|bash", "which of the two", true, false},
          {},
          run_manual,
          true};
}

}  // namespace dcpcheck::verbs
