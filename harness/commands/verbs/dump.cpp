#include <filesystem>
#include <optional>

#include "harness/commands/dump.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/select.hpp"
#include "harness/commands/verb.hpp"
#include "harness/core/error.hpp"
#include "harness/report/output.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck::verbs {
namespace {

NamedCase case_named(const Context& context, const Arguments& arguments, const RunSettings& settings) {
  const std::string& operand = arguments.operands.front();
  std::vector<NamedCase> cases =
      load_cases(context, arguments.operands, {settings.seed, settings.memory, arguments.all("--set")});
  if (cases.size() != 1)
    throw InputError(text::printable(operand) + ": dump takes one case, and there are " + std::to_string(cases.size()));
  check_dump(cases.front());
  return std::move(cases.front());
}

const Kernel& kernel_named(Context& context, const NamedCase& named, const RunSettings& settings) {
  const std::vector<const Kernel*> selected = select_kernels(context, settings.kernels);
  if (selected.size() > 1) throw InputError("dump takes one kernel, and there are " + std::to_string(selected.size()));
  const Kernel* const kernel = selected.empty() ? fixed_kernel(context.kernels, named.op->name) : selected.front();
  if (kernel == nullptr) throw InputError("there is no kernel for " + named.op->name + ": --kernel names one");
  if (kernel->op != named.op->name)
    throw InputError(kernel->name + " is a kernel of " + kernel->op + ", and the case is of " + named.op->name);
  if (!settings.backend->can_run(*kernel))
    throw InputError(kernel->name + " cannot run on the " + settings.backend->name() + " backend");
  return *kernel;
}

int emit(const Arguments& arguments, Context& context, const RunSettings& settings) {
  for (const char* const option : {"--kernel", "--expected"})
    if (arguments.has(option)) throw InputError(std::string(option) + " goes with -o DIR alone: --emit runs no kernel");
  const std::string path = arguments.text("-o", "-");
  std::error_code error;
  if (path != "-" && std::filesystem::is_regular_file(std::filesystem::symlink_status(path, error)))
    throw InputError(path + ": is there already, and nothing is overwritten");
  std::optional<ReportFile> file;
  if (path != "-") file.emplace(path);
  const NamedCase named = case_named(context, arguments, settings);
  const std::string text = dump_test_file(context, named, settings, arguments.text("--emit"));
  if (!file) {
    *context.out << text;
    flush_or_throw(*context.out, "stdout");
    return 0;
  }
  file->write(text);
  *context.out << text::printable(path) << ": " << text::count(static_cast<std::int64_t>(text.size()), "byte")
               << "; put the call of your kernel into kernel(), and run it by " << arguments.text("--emit") << "\n";
  flush_or_throw(*context.out, "stdout");
  return 0;
}

int run_dump(const Arguments& arguments, Context& context) {
  const RunSettings settings = run_settings(arguments);
  if (arguments.has("--emit")) return emit(arguments, context, settings);
  if (!arguments.has("-o")) throw InputError("dump needs -o DIR, or --emit; see dcpcheck dump --help");
  const NamedCase named = case_named(context, arguments, settings);
  const Kernel& kernel = kernel_named(context, named, settings);
  const DumpedFolder dumped = dump_folder(context, named, kernel, settings, arguments.text("-o"), arguments.has("--expected"));
  *context.out << dumped.lines;
  flush_or_throw(*context.out, "stdout");
  if (dumped.failed.empty()) return 0;
  const bool skipped = dumped.failed.kind == LaunchError::Kind::skipped;
  *context.err << "dcpcheck: " << kernel.name << " left nothing to observe"
               << (skipped ? ", as it is not for the case: " : ": ") << dumped.failed.why << "\n";
  return skipped ? 77 : 1;
}

}  // namespace

Verb dump() {
  return {"dump",
          "Write a case's inputs, what is right, and what a kernel left, for other programs",
          "-o DIR: arrays in NumPy's format, and index.json, which says what each is; the codes of bf16 and e4m3 as unsigned "
          "integers. --emit: one file that tests a kernel by itself. Nothing is overwritten.",
          {"CASE", "a case file, or repro:NAME (repro --list shows those)", true, false},
          {{"-o", "DIR", "The folder to make; with --emit the file, default: stdout", false},
           {"--expected", "", "Also low and high of each element, and which ones must be written", false},
           {"--emit", "pytest", "A test file: the inputs, what is admissible, and a place to call your kernel at", false},
           set_option(),
           backend_option(),
           kernel_option("the fixed kernel of the case's op"),
           seed_option(),
           threads_option(),
           memory_option(),
           ops_option()},
          run_dump};
}

}  // namespace dcpcheck::verbs
