#include "harness/commands/context.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/verb.hpp"
#include "harness/report/text.hpp"
#include "properties/law.hpp"

namespace dcpcheck::verbs {
namespace {

int run_laws(const Arguments& arguments, Context& context) {
  const JsonTarget target(arguments, context);
  json::Array list;
  for (const Law& law : all_laws()) {
    std::vector<std::string> ops;
    for (const auto& [name, op] : context.ops) {
      if (obeys(op, law)) ops.push_back(name);
    }
    if (!target.wanted()) {
      target.console() << law.name << "\n" << text::wrap("    " + law.doc, text::kColumns, 4);
      target.console() << text::wrap("    Of " + (law.of_every_op ? "every op" : text::list(ops)) + ".", text::kColumns, 4);
    }
    list.emplace_back(json::Object{{"name", law.name}, {"doc", law.doc}, {"ops", json::Array(ops.begin(), ops.end())}});
  }
  if (target.wanted()) target.write(list);
  return 0;
}

}  // namespace

Verb laws() {
  return {"laws", "Show the laws: what right kernels obey, and which ops", "", {}, {json_option(), ops_option()}, run_laws};
}

}  // namespace dcpcheck::verbs
