// Puts the parts together, runs the verb, and turns how it ended into an exit code.
#include <malloc.h>
#include <unistd.h>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/adapters/builtin.hpp"
#include "harness/adapters/cubin.hpp"
#include "harness/adapters/foreign_reference.hpp"
#include "harness/adapters/library.hpp"
#include "harness/adapters/process.hpp"
#include "harness/adapters/selftest.hpp"
#include "harness/commands/cli.hpp"
#include "harness/commands/context.hpp"
#include "harness/commands/launcher.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/signals.hpp"
#include "harness/commands/user_ops.hpp"
#include "harness/core/error.hpp"
#include "harness/report/text.hpp"
#include "reference/builtin_ops.hpp"

namespace dcpcheck {
namespace {

constexpr int kBadInput = 2;
constexpr int kHarnessFailed = 99;
constexpr int kBisectionAborted = 128;  // to `git bisect run` 2 and 99 would be answers

bool wants_colour(int descriptor) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return ::isatty(descriptor) == 1 && (no_colour == nullptr || *no_colour == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

// How a person called the program: harness/run says so of itself, as it builds before it becomes this program.
std::string called_as(const char* program) {
  const char* launcher = std::getenv("DCPCHECK_LAUNCHER");
  if (launcher != nullptr && *launcher != '\0') return launcher;
  return program == nullptr || *program == '\0' ? "dcpcheck" : program;
}

// The kernel from elsewhere that `spec` names, its file sought from `folder` and its command run there: an adapter for each
// prefix.
std::optional<Kernel> load_kernel(const std::string& spec, const std::filesystem::path& folder, const Ops& known,
                                  const std::atomic<int>& interrupted) {
  const auto in_folder = [&](std::string_view prefix) {
    return std::string(prefix) + (folder / spec.substr(prefix.size())).string();
  };
  if (spec.starts_with(kLibrary)) return load_library(in_folder(kLibrary), known);
  if (spec.starts_with(kCubin)) return load_cubin(in_folder(kCubin), known);
  if (!spec.starts_with(kProcess)) return std::nullopt;
  ProcessOptions options = process_options_from_environment();
  options.interrupted = &interrupted;
  if (folder.empty()) return load_process(spec, known, options);
  return load_process(
      std::string(kProcess) + "cd " + text::shell_quote(folder.string()) + " && " + spec.substr(kProcess.size()), known,
      options);
}

Context make_context(const char* program, const std::vector<std::string>& words, const std::atomic<int>& interrupted) {
  Context context;
  context.program = called_as(program);
  context.tool = tool_info();
  context.command = words;
  context.command.insert(context.command.begin(), "dcpcheck");
  const auto ops = builtin_ops();
  for (const auto& [name, builtin] : ops) {
    context.ops.emplace(name, builtin.op);
    context.references.emplace(name, builtin.reference);
  }
  context.kernels = builtin_kernels();
  // A pipeline as it should be: the fixed kernels of its ops.
  for (const auto& [name, op] : context.ops) {
    if (op.pipeline.empty()) continue;
    Kernel whole;
    whole.name = "builtin:" + name;
    whole.op = name;
    context.kernels.push_back(std::move(whole));
  }
  context.load_kernel = [&interrupted](const std::string& spec, const Ops& known) {
    return load_kernel(spec, {}, known, interrupted);
  };
  context.load_reference = [&interrupted](const Op& op, const std::filesystem::path& folder,
                                          const Ops& known) -> std::optional<Reference> {
    const std::optional<Kernel> kernel = load_kernel(op.reference, folder, known, interrupted);
    if (!kernel) return std::nullopt;
    return reference_of(*kernel, op);
  };
  context.corpus = embedded_corpus();
  context.self_test = [ops, kernels = context.kernels](Backend& backend) { return self_test(backend, ops, kernels); };
  context.interrupted = &interrupted;
  context.out = &std::cout;
  context.err = &std::cerr;
  context.colour_out = wants_colour(STDOUT_FILENO);
  context.colour_err = wants_colour(STDERR_FILENO);
  context.progress = ::isatty(STDERR_FILENO) == 1;
  return context;
}

int run(const char* program, const std::vector<std::string>& words, const std::atomic<int>& interrupted) {
  const ToolInfo tool = tool_info();
  const std::vector<Verb> verbs = all_verbs();
  const CommandLine line = parse_command_line(words, verbs, tool.version + " (" + tool.revision + ")");
  if (line.verb == nullptr) {
    std::cout << line.answer;
    return 0;
  }
  if (line.arguments.has("--distributed")) {
    if (const Launched launched = launched_by_environment(); launched.rank > 0)
      return keep_rank(launched, line.arguments, &interrupted);
  }
  Context context = make_context(program, words, interrupted);
  for (const std::string& folder : line.arguments.all("--ops")) add_ops(context, folder);
  return line.verb->run(line.arguments, context);
}

// One sentence for each line of `what`.
void complain(const std::string& what) {
  for (std::size_t at = 0; at < what.size();) {
    const std::size_t end = std::min(what.find('\n', at), what.size());
    std::cerr << "dcpcheck: " << text::printable(what.substr(at, end - at)) << "\n";
    at = end + 1;
  }
}

int guarded(const char* program, const std::vector<std::string>& words, const std::atomic<int>& interrupted, int& signal) {
  try {
    const int code = run(program, words, interrupted);
    flush_or_throw(std::cout, "stdout");
    return code;
  } catch (const InputError& error) {
    complain(error.what());
    return kBadInput;
  } catch (const Interrupted& stop) {
    signal = stop.signal;
    complain(std::string("stopped by ") + (stop.signal == SIGINT ? "SIGINT" : "SIGTERM") + ": no report was written");
    return kHarnessFailed;
  } catch (const std::bad_alloc&) {
    complain("the machine has not enough memory for this: --memory with a smaller size refuses such cases beforehand");
    return kHarnessFailed;
  } catch (const std::exception& error) {
    complain(error.what());
    return kHarnessFailed;
  }
}

}  // namespace
}  // namespace dcpcheck

// Cases follow one another and each asks for much the same memory: what is freed is kept for the next, as giving pages back
// and getting them anew takes longer than filling them.
void keep_freed_memory() {
  static_cast<void>(::mallopt(M_MMAP_THRESHOLD, 1 << 30));
  static_cast<void>(::mallopt(M_TRIM_THRESHOLD, 1 << 30));
}

int main(int argc, char** argv) {
  keep_freed_memory();
  std::ios::sync_with_stdio(false);
  std::atomic<int> interrupted{0};
  int signal = 0;
  int code = 0;
  {
    const dcpcheck::SignalWatch watch(interrupted);
    code = dcpcheck::guarded(argc > 0 ? argv[0] : nullptr, {argv + (argc > 0 ? 1 : 0), argv + argc}, interrupted, signal);
  }
  const bool step = argc > 1 && std::string_view(argv[1]) == "bisect-step";
  if (step && (code == dcpcheck::kBadInput || code == dcpcheck::kHarnessFailed)) code = dcpcheck::kBisectionAborted;
  if (signal != 0) {
    std::cout.flush();
    dcpcheck::die_by(signal);
  }
  return code;
}
