#include <utility>

#include "harness/commands/context.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/probe_report.hpp"
#include "harness/commands/select.hpp"
#include "harness/commands/suite.hpp"
#include "harness/commands/verb.hpp"
#include "harness/core/error.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck::verbs {
namespace {

std::vector<std::string> backends_of(const Kernel& kernel) {
  std::vector<std::string> backends;
  if (kernel.host) backends.emplace_back("host");
  if (kernel.cuda) backends.emplace_back("cuda");
  return backends;
}

json::Array texts(const std::vector<std::string>& values) { return json::Array(values.begin(), values.end()); }

json::Object declared_json(const Declaration& declared) {
  json::Object options;
  for (const auto& [name, values] : declared.options) options.emplace_back(name, texts(values));
  json::Array requirements;
  for (const Requirement& requirement : declared.requirements)
    requirements.emplace_back(json::Object{{"that", requirement.that.text()}, {"say", requirement.say}});
  return {{"name", declared.name},
          {"preset", declared.preset.empty() ? json::Value() : json::Value(declared.preset)},
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
  if (kernel.declared) object.emplace_back("declared", declared_json(*kernel.declared));
  return object;
}

// What a kernel from elsewhere declares; of the options of its op, those that it leaves out too.
std::string in_words(const Kernel& kernel, const Op& op) {
  const Declaration& declared = *kernel.declared;
  const auto line = [](const std::string& words) { return text::wrap("    " + text::printable(words), text::kColumns, 6); };
  std::string page = line(declared.name + ": " + kernel.op + ", " +
                          (kernel.host || kernel.cuda ? text::list(backends_of(kernel)) : "no backend of this build"));
  if (!declared.doc.empty()) page += line(declared.doc);
  if (!declared.preset.empty()) page += line("Preset " + declared.preset);
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
  return text::wrap("    " + kernel.doc, text::kColumns, 4) + "    Source: " + kernel.source +
         ". Caught for: " + kernel.reason + ", by: " + kernel.caught_by + "\n";
}

// Which backend a kernel is probed on, and with how much memory.
int run_probe(const Arguments& arguments, Context& context, const std::vector<std::string>& specs) {
  if (specs.size() != 1) throw InputError("--probe takes one kernel, and " + std::to_string(specs.size()) + " are named");
  const JsonTarget target(arguments, context);
  const RunSettings settings = run_settings(arguments);
  const std::vector<const Kernel*> chosen = select_kernels(context, specs);
  if (chosen.size() != 1) throw InputError("--probe takes one kernel, and " + specs.front() + " names several");
  const Kernel& kernel = *chosen.front();
  const Op& op = context.ops.at(kernel.op);
  if (!op.pipeline.empty())
    throw InputError("--probe " + specs.front() + ": " + op.name + " is a pipeline, which declares nothing");
  const Workbench bench = bench_of(context, settings, settings.threads);
  if (!can_run(bench, op, kernel)) {
    target.deliver(
        json::Object{{"kernel", kernel.name}, {"op", op.name}, {"fits", nullptr}},
        text::printable(kernel.name) + " cannot run on the " + settings.backend->name() + " backend: nothing was probed\n");
    return 77;
  }
  if (const std::string difference = settings.self_test ? context.self_test(*settings.backend) : ""; !difference.empty())
    throw HarnessError("the " + settings.backend->name() +
                       " backend does not compute the bits that it should, so nothing was run: " + difference);
  const Probe found = probe(bench, op, kernel);
  target.deliver(probe_json(found, op, kernel, settings.backend->name()),
                 probe_in_words(found, op, kernel, settings.backend->name()));
  return found.fits() ? 0 : found.cases > 0 && found.skipped == found.cases ? 77 : 1;
}

int run_kernels(const Arguments& arguments, Context& context) {
  std::vector<std::string> specs = arguments.operands;
  for (const std::string& spec : arguments.all("--kernel")) specs.push_back(spec);
  if (arguments.has("--probe")) return run_probe(arguments, context, specs);
  for (const std::string& option : std::vector<std::string>{"--backend", "--threads", "--memory", "--no-self-test"})
    if (arguments.has(option)) throw InputError(option + " goes with --probe: without it no kernel is run");
  const JsonTarget target(arguments, context);
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
  return {
      "kernels",
      "Show the kernels that come with dcpcheck, as fixed and with each fault, or what a library or a process declares",
      "With --probe, what a kernel declares is not looked at: the same cases are run under each value of each contract option, "
      "and what fails is tried again with less asked of the kernel. It exits with 1 where no declaration fits.",
      {"KERNEL",
       "as --kernel takes it; lib:FILE, cubin:FILE and exec:COMMAND show what the library, the manifest or the process "
       "declares; default: all that come with dcpcheck",
       false, true},
      {kernel_option("all that come with dcpcheck"),
       {"--probe", "", "Run a small set of cases on the one kernel named, and propose the declaration that fits it", false},
       backend_option(),
       threads_option(),
       memory_option(),
       self_test_option(),
       json_option(),
       ops_option()},
      run_kernels};
}

}  // namespace dcpcheck::verbs
