#include "harness/commands/cases.hpp"
#include "harness/commands/context.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/report_target.hpp"
#include "harness/commands/select.hpp"
#include "harness/commands/suite.hpp"
#include "harness/commands/verb.hpp"
#include "harness/core/error.hpp"
#include "harness/report/console.hpp"
#include "harness/report/text.hpp"

#include <utility>

namespace dcpcheck::verbs {
namespace {

// A kernel that was asked for is expected to be right, a known fault too: whoever runs it wants to see it fail. Only of
// the fixed kernel may a case expect something else, as a launch that is refused.
Expectation expected_of(const NamedCase& named, const Kernel& kernel) {
  return kernel.fault.empty() ? expectation_of(named.file, kernel) : Expectation{};
}

// One that is nullptr where no law is named: then every element is judged.
std::vector<const Law*> laws_named(const std::vector<std::string>& names) {
  std::vector<const Law*> laws;
  for (const std::string& name : names) laws.push_back(&law_named(name));
  if (laws.empty()) laws.push_back(nullptr);
  return laws;
}

// The cases that the command line names: CASE…, or the one of --from with its --set.
std::vector<NamedCase> cases_named(const Context& context, const Arguments& arguments, const RunSettings& settings) {
  CaseRules rules{settings.seed, settings.memory, arguments.all("--set")};
  if (!arguments.has("--from")) {
    if (!rules.sets.empty()) throw InputError("--set needs --from CASE: the case whose fields it replaces");
    if (arguments.operands.empty()) throw InputError("run needs a CASE; see dcpcheck run --help");
    return load_cases(context, arguments.operands, rules);
  }
  if (!arguments.operands.empty())
    throw InputError("--from takes the place of CASE, but " + text::printable(arguments.operands.front()) + " was given, too");
  return load_cases(context, {arguments.text("--from")}, rules);
}

std::vector<Job> jobs_for(const Context& context, const std::vector<NamedCase>& cases,
                          const std::vector<const Kernel*>& selected, const std::vector<const Law*>& laws) {
  std::vector<Job> jobs;
  for (const NamedCase& named : cases) {
    Job job{&named, {}, {}, {}};
    std::vector<const Kernel*> kernels = selected;
    if (kernels.empty())
      if (const Kernel* fixed = fixed_kernel(context.kernels, named.op->name)) kernels.push_back(fixed);
    for (const Kernel* kernel : kernels)
      if (runs_on(*named.op, *kernel))
        for (const Law* law : laws) job.runs.push_back({kernel, expected_of(named, *kernel), law});
    if (job.runs.empty()) {
      job.skipped_kernel = selected.empty() ? "builtin:" + named.op->name : selected.front()->name;
      job.skipped = selected.empty() ? "there is no kernel for " + named.op->name
                                     : job.skipped_kernel + " is a kernel of " + selected.front()->op +
                                           ", and the case is of " + named.op->name;
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

void list(const std::vector<Job>& jobs, std::ostream& out) {
  for (const Job& job : jobs) {
    out << job.named->id << "  " << text::printable(job.named->reference);
    if (!job.named->file.name.empty()) out << "  " << text::printable(job.named->file.name);
    out << "\n";
    for (const Job::Run& run : job.runs) out << "    " << run.kernel->name << "\n";
    if (job.runs.empty()) out << "    skipped: " << job.skipped << "\n";
  }
}

int run_run(const Arguments& arguments, Context& context) {
  const ReportTarget target(arguments, context);
  const RunSettings settings = run_settings(arguments);
  const std::vector<const Kernel*> selected = select_kernels(context, settings.kernels);
  const std::vector<NamedCase> cases = cases_named(context, arguments, settings);
  for (const NamedCase& named : cases) target.spare(named.reference);
  const std::vector<Job> jobs = jobs_for(context, cases, selected, laws_named(arguments.all("--law")));
  if (arguments.has("--list")) {
    list(jobs, *context.out);
    return 0;
  }
  std::ostream& console = target.console();
  const SuiteResult suite =
      run_suite(context, settings, jobs, {}, [&](const NamedCase&, const Kernel&, const std::string& replay) {
        console << replay << "\n" << std::flush;  // before the run: it is there whatever the kernel does
      });
  const Report& report = suite.report;
  std::string text = (report.results.empty() ? "" : "\n") + render_console(report, {target.colour()});
  const bool single = report.results.size() == 1;
  bool first = true;
  for (const Result& result : report.results) {
    if (result.as_expected && !single) continue;
    text += (std::exchange(first, false) ? "\n" : "") + result.replay + "\n";
  }
  target.deliver(report, text);
  const int code = exit_code(report);
  if (code == 3)
    *context.err << "dcpcheck: nothing was vouched for: "
                 << (report.results.empty() ? "there is no *.json in what was named" : "no case came to an answer") << "\n";
  return code;
}

}  // namespace

Verb run() {
  return {"run",
          "Run cases on a kernel and judge every element",
          "Every case is read and checked before the first one runs. The line that repeats a run stands before it, and again "
          "last where it is not as expected.",
          {"CASE", "a case file, a folder of them, or repro:NAME (repro --list shows those)", false, true},
          with_format_options({backend_option(),
                               {"--from", "CASE", "In place of CASE…: a case, of which --set replaces fields", false},
                               set_option(),
                               devices_option(),
                               transport_option(),
                               kernel_option("the fixed kernel of the case's op"),
                               json_option(),
                               seed_option(),
                               threads_option(),
                               memory_option(),
                               {"--law", "NAME", "Ask this law alone, in place of judging every element (dcpcheck laws)", true},
                               ops_option(),
                               self_test_option(),
                               {"--list", "", "Show the cases and kernels, and run nothing", false}}),
          run_run};
}

}  // namespace dcpcheck::verbs
