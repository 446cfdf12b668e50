#include "harness/commands/context.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/verb.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck::verbs {
namespace {

int run(const Arguments& arguments, Context& context) {
  const JsonTarget target(arguments, context);
  json::Array list;
  for (const Kernel& kernel : context.kernels) {
    json::Array backends;
    if (kernel.host) backends.emplace_back("host");
    if (kernel.cuda) backends.emplace_back("cuda");
    if (!target.wanted()) {
      target.console() << kernel.name << "\n";
      if (!kernel.doc.empty()) {
        target.console() << text::wrap("    " + kernel.doc, 80, 4) << "    Source: " << kernel.source
                         << ". Caught for: " << kernel.reason << ", by: " << kernel.caught_by << "\n";
      }
    }
    list.emplace_back(json::Object{{"name", kernel.name},
                                   {"op", kernel.op},
                                   {"fault", kernel.fault.empty() ? json::Value() : json::Value(kernel.fault)},
                                   {"backends", std::move(backends)},
                                   {"doc", kernel.doc},
                                   {"source", kernel.source},
                                   {"reason", kernel.reason},
                                   {"caught_by", kernel.caught_by}});
  }
  if (target.wanted()) target.write(list);
  return 0;
}

}  // namespace

Verb kernels() {
  return {"kernels", "Show the kernels that come with dcpcheck, as fixed and with each fault", "", {}, {json_option()}, run};
}

}  // namespace dcpcheck::verbs
