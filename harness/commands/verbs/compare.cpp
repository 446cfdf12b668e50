#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/commands/cases.hpp"
#include "harness/commands/context.hpp"
#include "harness/commands/golden.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/select.hpp"
#include "harness/commands/suite.hpp"
#include "harness/commands/verb.hpp"
#include "harness/core/error.hpp"
#include "harness/exec/divergence.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck::verbs {
namespace {

struct Compared {
  std::string kernel;
  CaseResult result;
};

std::map<std::string, std::string> digests_of(const CaseResult& result) {
  std::map<std::string, std::string> digests = result.outputs;
  if (result.tokens) digests["tokens"] = result.tokens->digest;
  return digests;
}

// Outputs whose digests differ, by rank and buffer.
std::vector<std::string> differing(const CaseResult& a, const CaseResult& b) {
  std::vector<std::string> outputs;
  const std::map<std::string, std::string> was = digests_of(a), is = digests_of(b);
  for (const auto& [output, digest] : was)
    if (const auto other = is.find(output); other == is.end() || other->second != digest) outputs.push_back(output);
  for (const auto& [output, digest] : is)
    if (!was.contains(output)) outputs.push_back(output);
  return outputs;
}

json::Value to_json(const Compared& one) {
  return json::Object{{"kernel", one.kernel},
                      {"status", std::string(name_of(one.result.verdict.status))},
                      {"detail", one.result.verdict.detail},
                      {"digest", json::text_or_null(one.result.all_digest)}};
}

int run_compare(const Arguments& arguments, Context& context) {
  const JsonTarget target(arguments, context);
  const RunSettings settings = run_settings(arguments);
  if (settings.kernels.size() != 2)
    throw InputError("compare takes two kernels, each by --kernel, not " + std::to_string(settings.kernels.size()));
  std::vector<const Kernel*> kernels = select_kernels(context, settings.kernels);
  const std::vector<NamedCase> cases = load_cases(context, {arguments.operands.front()}, {settings.seed, settings.memory});
  if (cases.size() != 1) throw InputError("compare takes one case, and there are " + std::to_string(cases.size()));
  const NamedCase& named = cases.front();
  // A name may stand for kernels of several ops: @eps_left_out.
  std::erase_if(kernels, [&](const Kernel* kernel) { return !runs_on(*named.op, *kernel); });
  if (kernels.size() != 2)
    throw InputError("compare takes two kernels of " + named.op->name + ", and " + std::to_string(kernels.size()) +
                     " have the names that were given");
  const Workbench bench = bench_of(context, settings, settings.threads);
  for (const Kernel* kernel : kernels) {
    if (!can_run(bench, *named.op, *kernel))
      throw InputError(kernel->name + " cannot run on the " + settings.backend->name() + " backend");
  }
  if (const std::string difference = settings.self_test ? context.self_test(*settings.backend) : ""; !difference.empty())
    throw HarnessError("the " + settings.backend->name() +
                       " backend does not compute the bits that it should, so nothing was "
                       "run: " +
                       difference);
  Prepared prepared = prepare(*named.op, context.references.at(named.op->name), named.file.value, settings.memory,
                              settings.threads, named.reference);
  RunOptions options;
  options.threads = settings.threads;
  options.interrupted = context.interrupted;
  ReferenceMemory answers;
  std::vector<Compared> both;
  for (const Kernel* kernel : kernels) {
    context.check_interrupted();
    both.push_back({kernel->name, judge(bench, prepared, *kernel, options, answers)});
  }
  const std::vector<std::string> outputs = differing(both[0].result, both[1].result);
  const bool second_left = !digests_of(both[1].result).empty();
  const bool nothing = !second_left && digests_of(both[0].result).empty();
  std::vector<GoldenFinding::Place> places;
  for (const std::string& output : outputs) {
    const auto [rank, buffer] = parts_of(output);
    const auto digest = both[0].result.outputs.find(output);
    // A pipeline's launches are given what others left: its buffers are told by name alone.
    if (!second_left || rank < 0 || !named.op->pipeline.empty() || digest == both[0].result.outputs.end()) continue;
    if (auto at =
            first_divergence(prepared, rank, buffer, digest->second, {kernels[0]}, *kernels[1], *settings.backend, options))
      places.push_back({output, std::move(*at), true});
  }
  std::string lines;
  json::Array kernels_told, places_told, outputs_told;
  bool skipped = false;
  for (const Compared& one : both) {
    const Verdict& verdict = one.result.verdict;
    lines += text::wrap(text::printable(one.kernel) + ": " + std::string(name_of(verdict.status)) +
                            (verdict.detail.empty() ? "" : ", " + text::printable(verdict.detail)),
                        text::kColumns, 2);
    skipped = skipped || verdict.status == Status::skipped;
    kernels_told.push_back(to_json(one));
  }
  for (const std::string& output : outputs) outputs_told.emplace_back(output);
  for (const GoldenFinding::Place& place : places) {
    lines += text::wrap("  " + text::printable(place_in_words(place)), text::kColumns, 4);
    places_told.push_back(dcpcheck::to_json(place));
  }
  if (places.empty() && !outputs.empty()) lines += text::wrap("  These differ: " + text::list(outputs), text::kColumns, 4);
  if (outputs.empty() && !skipped) lines += nothing ? "  Neither left anything.\n" : "  They leave the same.\n";
  target.deliver(json::Object{{"schema", "dcpcheck.compare/1"},
                              {"case", named.id},
                              {"name", named.file.name},
                              {"kernels", std::move(kernels_told)},
                              {"outputs", std::move(outputs_told)},
                              {"places", std::move(places_told)}},
                 lines);
  return skipped ? 77 : outputs.empty() && !nothing ? 0 : 1;
}

}  // namespace

Verb compare() {
  return {
      "compare",
      "Run a case on two kernels, and say where what they leave first differs",
      "Two builds of a kernel, or two kernels of an op: for each output and cache of each rank the first token and element "
      "in which the second differs from the first, and both values. Exits 0 where they leave the same bits, 1 where not, 77 "
      "where one of them is not for the case.",
      {"CASE", "a case file, or repro:NAME", true, false},
      {kernel_option("none: give two"), backend_option(), json_option(), seed_option(), threads_option(), memory_option(),
       ops_option(), self_test_option()},
      run_compare};
}

}  // namespace dcpcheck::verbs
