#include <utility>

#include "harness/commands/context.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/select.hpp"
#include "harness/commands/verb.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck::verbs {
namespace {

constexpr int kColumns = 80;

std::vector<std::string> backends_of(const Kernel& kernel) {
  std::vector<std::string> backends;
  if (kernel.host) backends.emplace_back("host");
  if (kernel.cuda) backends.emplace_back("cuda");
  return backends;
}

json::Array texts(const std::vector<std::string>& values) { return json::Array(values.begin(), values.end()); }

json::Object to_json(const Declaration& declared) {
  json::Object options;
  for (const auto& [name, values] : declared.options) options.emplace_back(name, texts(values));
  json::Array requirements;
  for (const Requirement& requirement : declared.requirements)
    requirements.emplace_back(json::Object{{"that", requirement.that.text()}, {"say", requirement.say}});
  return {{"name", declared.name},
          {"options", std::move(options)},
          {"tensors", declared.tensors ? json::Value(texts(*declared.tensors)) : json::Value()},
          {"requirements", std::move(requirements)},
          {"source", declared.source.empty() ? json::Value() : json::Value(declared.source)}};
}

json::Object to_json(const Kernel& kernel) {
  json::Object object{{"name", kernel.name},
                      {"op", kernel.op},
                      {"fault", kernel.fault.empty() ? json::Value() : json::Value(kernel.fault)},
                      {"backends", texts(backends_of(kernel))},
                      {"doc", kernel.doc},
                      {"source", kernel.source},
                      {"reason", kernel.reason},
                      {"caught_by", kernel.caught_by}};
  if (kernel.declared) object.emplace_back("declared", to_json(*kernel.declared));
  return object;
}

// What a kernel from elsewhere declares; of the options of its op, those that it leaves out too.
std::string in_words(const Kernel& kernel, const Op& op) {
  const Declaration& declared = *kernel.declared;
  const auto line = [](const std::string& words) { return text::wrap("    " + text::printable(words), kColumns, 6); };
  std::string page = line(declared.name + ": " + kernel.op + ", " +
                          (kernel.host || kernel.cuda ? text::list(backends_of(kernel)) : "no backend of this build"));
  if (!declared.doc.empty()) page += line(declared.doc);
  for (const Option& option : op.contract) {
    const auto followed = declared.options.find(option.name);
    page += line("Contract option " + option.name + ": " +
                 (followed == declared.options.end() ? option.values.front() + ", the default" : text::list(followed->second)));
  }
  if (declared.tensors) page += line("Tensors: " + text::list(*declared.tensors));
  for (const Requirement& requirement : declared.requirements)
    page += line("Requires " + requirement.that.text() + (requirement.say.empty() ? "" : " (" + requirement.say + ")"));
  if (!declared.source.empty()) page += line("Loaded from " + declared.source);
  return page;
}

std::string in_words(const Kernel& kernel) {
  if (kernel.doc.empty()) return "";
  return text::wrap("    " + kernel.doc, kColumns, 4) + "    Source: " + kernel.source + ". Caught for: " + kernel.reason +
         ", by: " + kernel.caught_by + "\n";
}

int run(const Arguments& arguments, Context& context) {
  const JsonTarget target(arguments, context);
  std::vector<std::string> specs = arguments.operands;
  for (const std::string& spec : arguments.all("--kernel")) specs.push_back(spec);
  std::vector<const Kernel*> chosen = select_kernels(context, specs);
  if (specs.empty())
    for (const Kernel& kernel : context.kernels) chosen.push_back(&kernel);
  json::Array list;
  for (const Kernel* kernel : chosen) {
    if (!target.wanted()) {
      target.console() << text::printable(kernel->name) << "\n"
                       << (kernel->declared ? in_words(*kernel, context.ops.at(kernel->op)) : in_words(*kernel));
    }
    list.emplace_back(to_json(*kernel));
  }
  if (target.wanted()) target.write(list);
  return 0;
}

}  // namespace

Verb kernels() {
  return {"kernels",
          "Show the kernels that come with dcpcheck, as fixed and with each fault, or what a library or a process declares",
          "",
          {"KERNEL",
           "as --kernel takes it; lib:FILE, cubin:FILE and exec:COMMAND show what the library, the manifest or the process "
           "declares; default: all that come with dcpcheck",
           false, true},
          {kernel_option("all that come with dcpcheck"), json_option(), ops_option()},
          run};
}

}  // namespace dcpcheck::verbs
