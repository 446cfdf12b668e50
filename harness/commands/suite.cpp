#include "harness/commands/suite.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "harness/commands/diagnosis.hpp"
#include "harness/commands/machine.hpp"
#include "harness/commands/select.hpp"
#include "harness/core/error.hpp"
#include "harness/exec/workbench.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

std::string replay_line(const Context& context, const RunSettings& settings, const NamedCase& named, const std::string& kernel,
                        const Law* law) {
  std::string line = text::shell_quote(context.program) + " run --backend " + settings.backend->name() + " --kernel " +
                     text::shell_quote(kernel);
  if (!settings.devices_text.empty()) line += " --devices " + settings.devices_text;
  if (!settings.transport_text.empty()) line += " --transport " + settings.transport_text;
  for (const std::string& folder : context.op_folders) line += " --ops " + text::shell_quote(folder);
  if (law != nullptr) line += " --law " + law->name;
  line += " --seed " + seed_text(named.file.value.seed);
  if (!settings.memory_text.empty()) line += " --memory " + text::shell_quote(settings.memory_text);
  if (named.sets.empty()) return line + " " + text::shell_quote(named.reference);
  line += " --from " + text::shell_quote(named.reference);
  for (const std::string& set : named.sets) line += " --set " + text::shell_quote(set);
  return line;
}

Result new_result(const Context& context, const RunSettings& settings, const NamedCase& named, const std::string& kernel,
                  const Law* law = nullptr) {
  Result result;
  result.case_reference = named.reference;
  result.id = named.id;
  result.name = named.file.name;
  result.op = named.op->name;
  result.kernel = kernel;
  result.contract = named.file.value.contract;
  result.backend = settings.backend->name();
  result.world_size = named.file.value.geometry.world_size;
  result.token_rows = named.file.value.geometry.live_tokens();
  if (law != nullptr) result.law = law->name;
  result.replay = replay_line(context, settings, named, kernel, law);
  return result;
}

Result skipped_result(const Context& context, const RunSettings& settings, const NamedCase& named, const std::string& kernel,
                      std::string why) {
  Result result = new_result(context, settings, named, kernel);
  if (const std::size_t at = kernel.find('@'); at != std::string::npos) result.fault = kernel.substr(at + 1);
  result.verdict.status = Status::skipped;
  result.verdict.detail = std::move(why);
  return result;
}

// What the law of `run` says of the case; there are no digests in it, as it may be about many launches.
Result by_law(const Workbench& bench, Result result, const Job::Run& run, const NamedCase& named) {
  const auto start = std::chrono::steady_clock::now();
  Trial trial(bench, *named.op, *run.kernel, named.file.value);
  result.fault = run.kernel->fault;
  result.expected = run.expected;
  result.verdict = verdict_of(*run.law, apply(*run.law, trial));
  result.as_expected = matches(run.expected, result.verdict);
  result.cause = diagnose(trial.plan(), result.verdict);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace

Workbench bench_of(const Context& context, const RunSettings& settings, int threads) {
  return {&context.ops, &context.references, &context.kernels,   settings.backend.get(),
          threads,      settings.memory,     context.interrupted};
}

Report new_report(const Context& context, const RunSettings& settings) {
  Report report;
  report.tool = context.tool;
  report.machine = describe_machine(settings.threads, settings.backend.get());
  report.command = context.command;
  report.seed = settings.seed;
  return report;
}

SuiteResult run_suite(Context& context, const RunSettings& settings, const std::vector<Job>& jobs,
                      const std::vector<std::string>& consumed, const BeforeRun& before) {
  Backend& backend = *settings.backend;
  SuiteResult suite;
  suite.report = new_report(context, settings);
  if (const std::string difference = settings.self_test ? context.self_test(backend) : ""; !difference.empty())
    throw HarnessError("the " + backend.name() +
                       " backend does not compute the bits that it should, so nothing was run: " + difference);
  RunOptions options;
  options.threads = settings.threads;
  options.consumed = consumed;
  options.interrupted = context.interrupted;
  const Workbench bench = bench_of(context, settings, settings.threads);
  ReferenceMemory answers;
  for (const Job& job : jobs) {
    const NamedCase& named = *job.named;
    if (job.runs.empty())
      suite.report.results.push_back(skipped_result(context, settings, named, job.skipped_kernel, job.skipped));
    std::optional<Prepared> prepared;  // once a kernel needs it
    for (const Job::Run& run : job.runs) {
      context.check_interrupted();
      const Kernel& kernel = *run.kernel;
      if (!can_run(bench, *named.op, kernel)) {
        Result result = skipped_result(context, settings, named, kernel.name,
                                       kernel.name + " cannot run on the " + backend.name() + " backend");
        result.expected = run.expected;
        suite.report.results.push_back(std::move(result));
        continue;
      }
      Result result = new_result(context, settings, named, kernel.name, run.law);
      before(named, kernel, result.replay);
      if (run.law != nullptr) {
        suite.report.results.push_back(by_law(bench, std::move(result), run, named));
        continue;
      }
      if (!prepared)
        prepared = prepare(*named.op, context.references.at(named.op->name), named.file.value, settings.memory,
                           settings.threads, named.reference);
      context.check_interrupted();
      CaseResult outcome = judge(bench, *prepared, kernel, options, answers);
      result.fault = kernel.fault;
      result.expected = run.expected;
      result.as_expected = matches(run.expected, outcome.verdict);
      result.cause = diagnose(prepared->plan, outcome.verdict);
      result.verdict = std::move(outcome.verdict);
      result.inputs_digest = std::move(outcome.inputs_digest);
      result.all_digest = std::move(outcome.all_digest);
      result.output_digests = std::move(outcome.outputs);
      result.tokens = std::move(outcome.tokens);
      result.seconds = outcome.seconds;
      const bool skipped = result.verdict.status == Status::skipped;
      suite.report.results.push_back(std::move(result));
      if (!skipped) suite.consumed.push_back({&job, &kernel, std::move(outcome.consumed)});
    }
  }
  context.check_interrupted();
  return suite;
}

}  // namespace dcpcheck
