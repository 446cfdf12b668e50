#include <algorithm>
#include <filesystem>
#include <utility>

#include "harness/campaign/campaign.hpp"
#include "harness/commands/cases.hpp"
#include "harness/commands/context.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/stored.hpp"
#include "harness/commands/verb.hpp"
#include "harness/core/error.hpp"
#include "harness/core/reader.hpp"
#include "harness/exec/generate.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck::verbs {
namespace {

int run_shrink(const Arguments& arguments, Context& context) {
  const RunSettings settings = run_settings(arguments);
  const std::vector<NamedCase> cases = load_cases(context, {arguments.operands.front()}, {settings.seed, settings.memory});
  if (cases.size() != 1) throw InputError("shrink takes one case, and there are " + std::to_string(cases.size()));
  const NamedCase& named = cases.front();
  if (!named.file.value.stored.empty())
    throw InputError(named.reference + ": its tensors lie in files beside it; with fewer tokens they would be others");
  const Op& op = *named.op;
  CampaignSpec spec;
  spec.backend = settings.backend->name();
  spec.kernels = settings.kernels;
  spec.ops = {op.name};
  spec.op_folders = context.op_folders;
  spec.memory = settings.memory_text;
  std::string law = arguments.text("--law");
  // A finding says by itself on what and by which law.
  std::error_code error;
  if (std::filesystem::is_regular_file(named.reference, error)) {
    const json::Value document = json::parse(json::text_of(named.reference), named.reference);
    if (has_finding(document)) {
      const Finding found = finding_from_json(context.ops, document, named.reference);
      if (spec.kernels.empty()) spec.kernels = {found.signature.kernel};
      if (!arguments.has("--law")) law = found.signature.law;
    }
  }
  WorkerOptions options;
  options.words = worker_command(spec, arguments.has("--no-self-test"));
  options.case_limit = parse_time("--case-limit", arguments.text("--case-limit", "60s"), 86400);
  options.start_limit = std::chrono::minutes(10);
  options.interrupted = context.interrupted;
  auto worker = std::make_unique<WorkerLink>(options);
  const std::vector<Lane> lanes = lanes_from_json(Reader(worker->hello(), "a worker's answer").at("lanes").value(), "a worker");
  if (lanes.size() != 1) throw InputError("shrink takes one kernel, and " + std::to_string(lanes.size()) + " were named");
  const auto evaluate = [&](const Case& value) {
    context.check_interrupted();
    if (!worker->alive()) worker = std::make_unique<WorkerLink>(options);
    return worker->examine(0, case_to_json(op, value), {law});
  };
  const Case& from = named.file.value;
  const std::vector<Check> checks = evaluate(from);
  const auto wrong = std::find_if(checks.begin(), checks.end(), [](const Check& check) { return is_finding(check.status); });
  if (wrong == checks.end()) {
    *context.out << text::printable(named.reference) << ": " << lanes.front().kernel << ": " << name_of(status_of(checks))
                 << (law.empty() ? "" : ", " + law) << "; there is nothing to make small\n";
    return 0;
  }
  const auto valid = [&](const Case& value) {
    if (!op.pipeline.empty()) check_generate(context.ops, op, value, settings.memory, "case");
  };
  Shrunk shrunk =
      shrink_by(op, from, *wrong, evaluate,
                static_cast<std::int64_t>(parse_cases("--shrink-evals", arguments.text("--shrink-evals", "400"))),
                parse_time("--shrink-time", arguments.text("--shrink-time", "300s"), 86400), settings.memory, valid);
  Finding finding;
  finding.signature = signature_of(lanes.front(), shrunk.check);
  finding.id = id_of(finding.signature);
  finding.of = named.reference;
  finding.backend = spec.backend;
  finding.check = std::move(shrunk.check);
  finding.value = std::move(shrunk.value);
  finding.from = from;
  finding.evaluations = shrunk.evaluations;
  finding.stopped = std::move(shrunk.stopped);
  finding.replay = replay_of(replay_words(context, spec), finding.signature);
  const std::string out = arguments.text("--out", finding.id + ".json");
  ReportFile(out).write(json::dump(to_json(context.ops, finding), 1) + "\n");
  std::string lines;
  for (const std::string& sentence : finding.check.what) lines += text::wrap(sentence, 80, 2);
  if (finding.check.what.empty()) lines += text::wrap(text::printable(finding.check.detail), 80, 2);
  const auto size = [](const Case& value) {
    return text::count(value.geometry.live_tokens(), "token") + " on " + text::count(value.geometry.tp, "rank");
  };
  lines +=
      text::wrap(size(from) + " before, " + size(finding.value) + " after " + text::count(finding.evaluations, "evaluation") +
                     (finding.stopped.empty() ? ": nothing more can be taken away" : "; it ended " + finding.stopped),
                 80, 2);
  *context.out << lines << replay_line(finding, out) << "\n";
  return 1;
}

}  // namespace

Verb shrink() {
  return {"shrink",
          "Make a case on which a kernel fails as small as it can be",
          "Takes requests, tokens, ranks, width and features away as long as the same law reports the same reason in the same "
          "buffer, "
          "each case in a process of its own kind, so that a kernel that crashes or hangs can be shrunk, too. Exits 1 where "
          "the case "
          "fails, 0 where it passes.",
          {"CASE", "a case file, or a finding's", true, false},
          {{"--out", "FILE", "Where the small case goes; default: <id>.json here", false},
           {"--law", "NAME", "Hold it to this law, in place of judging every element", false},
           {"--shrink-evals", "N", "Cases that it may take (default 400)", false},
           {"--shrink-time", "TIME", "… and time at the most (default 5m)", false},
           {"--case-limit", "TIME", "A case that takes longer hangs (default 60s)", false},
           backend_option(),
           kernel_option("the fixed kernel of the case's op; of a finding its own"),
           seed_option(),
           memory_option(),
           ops_option(),
           self_test_option()},
          run_shrink};
}

}  // namespace dcpcheck::verbs
