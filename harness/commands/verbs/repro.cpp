#include "harness/commands/cases.hpp"
#include "harness/commands/context.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/relations.hpp"
#include "harness/commands/report_target.hpp"
#include "harness/commands/select.hpp"
#include "harness/commands/suite.hpp"
#include "harness/commands/verb.hpp"
#include "harness/core/error.hpp"
#include "harness/report/console.hpp"
#include "harness/report/text.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace dcpcheck::verbs {
namespace {

// Scenario by scenario, in each the ops by name, DCP1 before DCP4; scenarios by their size as the names say it.
std::vector<NamedCase> in_order(std::vector<NamedCase> cases) {
  const auto key = [](const NamedCase& named) {
    const ScenarioName name = scenario_of(named.file.name);
    return std::tuple(named.op->name != "fused_norm_rope", named.op->pipeline.empty(),
                      name.scenario.find('+') != std::string::npos, name.scenario.size(), name.scenario, name.world_size);
  };
  std::stable_sort(cases.begin(), cases.end(), [&](const NamedCase& a, const NamedCase& b) { return key(a) < key(b); });
  return cases;
}

// Each case on the kernels that were asked for; where none were, on those that the cases of its op expect something of.
std::vector<Job> jobs_for(const std::vector<Kernel>& known, const std::vector<NamedCase>& cases,
                          const std::vector<const Kernel*>& asked) {
  const auto expected = asked.empty() ? expected_kernels(known, cases) : std::map<std::string, std::vector<const Kernel*>>{};
  std::vector<Job> jobs;
  for (const NamedCase& named : cases) {
    Job job{&named, {}, {}, {}};
    for (const Kernel* kernel : asked.empty() ? expected.at(named.op->name) : asked)
      if (runs_on(*named.op, *kernel)) job.runs.push_back({kernel, expectation_of(named.file, *kernel)});
    if (!job.runs.empty()) jobs.push_back(std::move(job));
  }
  return jobs;
}

// Cases are run one after the other, each on all kernels, so that its inputs and reference are made once. Here they
// are put in the order in which they are read: scenario, kernel, DCP1 before DCP4.
void sort_for_reading(std::vector<Result>& results) {
  std::map<std::string, std::size_t> scenarios, kernels;
  for (const Result& result : results) {
    scenarios.emplace(scenario_of(result.name).scenario, scenarios.size());
    if (!result.fault.empty()) kernels.emplace(result.kernel, kernels.size());
  }
  const auto key = [&](const Result& result) {
    const ScenarioName name = scenario_of(result.name);
    // The fixed kernel first.
    const std::size_t kernel = result.fault.empty() ? 0 : 1 + kernels.at(result.kernel);
    return std::tuple(scenarios.at(name.scenario), kernel, name.world_size);
  };
  std::stable_sort(results.begin(), results.end(), [&](const Result& a, const Result& b) { return key(a) < key(b); });
}

void list_expected(const std::vector<Job>& jobs, std::ostream& out) {
  for (const Job& job : jobs) {
    out << job.named->id << "  " << text::printable(job.named->reference) << "\n";
    for (const Job::Run& run : job.runs)
      out << "    " << run.kernel->name << ": " << name_of(run.expected.status) << " expected\n";
  }
}

int run_repro(const Arguments& arguments, Context& context) {
  const ReportTarget target(arguments, context);
  const RunSettings settings = run_settings(arguments, context.interrupted);
  const CaseRules rules{settings.seed, settings.memory};
  const std::vector<NamedCase> cases = in_order(
      arguments.has("--corpus") ? load_cases(context, {arguments.text("--corpus")}, rules) : load_embedded(context, rules));
  const std::vector<Job> jobs = jobs_for(context.kernels, cases, select_kernels(context, settings.kernels));
  if (arguments.has("--list")) {
    list_expected(jobs, *context.out);
    return 0;
  }
  std::size_t total = 0, done = 0;
  for (const Job& job : jobs) total += job.runs.size();
  SuiteResult suite = run_suite(context, settings, jobs, k_rows_buffers(),
                                [&](const NamedCase& named, const Kernel& kernel, const std::string&) {
                                  if (!context.progress) return;
                                  *context.err << "\r\x1b[K" << ++done << "/" << total << " "
                                               << text::printable(named.file.name) << " " << kernel.name << std::flush;
                                });
  if (context.progress) *context.err << "\r\x1b[K" << std::flush;
  suite.report.paired = true;
  suite.report.relations = k_rows_relations(suite.consumed, settings.backend->name());
  std::vector<Relation> tokens = token_relations(suite.report.results);
  suite.report.relations.insert(suite.report.relations.end(), tokens.begin(), tokens.end());
  sort_for_reading(suite.report.results);
  std::string text = render_console(suite.report, {target.colour()});
  for (const Result& result : suite.report.results)
    if (!result.as_expected) text += result.replay + "\n";
  target.deliver(suite.report, text);
  const int code = exit_code(suite.report);
  if (code == 3) *context.err << "dcpcheck: nothing was vouched for: no case came to an answer\n";
  return code;
}

}  // namespace

Verb repro() {
  return {"repro",
          "Run the three scenarios of vLLM issue 54907 on the kernels as fixed and as they were",
          "Each scenario runs under DCP1 and DCP4, on the fixed kernel and on each fault that the case files name, and is held "
          "against what they expect; the K rows that dense prefill would read are compared between DCP1 and each rank of "
          "DCP4. Exit code 0: everything is as expected, the faults' failures too.",
          {},
          with_format_options({backend_option(),
                               devices_option(),
                               transport_option(),
                               distributed_option(),
                               kernel_option("the fixed ones and each fault that a case names"),
                               json_option(),
                               seed_option(),
                               threads_option(),
                               memory_option(),
                               self_test_option(),
                               {"--corpus", "DIR", "Take the cases from this folder; default: those built in", false},
                               {"--list", "", "Show what would run, and run nothing", false}}),
          run_repro};
}

}  // namespace dcpcheck::verbs
