#include "harness/commands/bisect.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "harness/campaign/source.hpp"
#include "harness/campaign/words.hpp"
#include "harness/commands/cases.hpp"
#include "harness/commands/golden.hpp"
#include "harness/commands/select.hpp"
#include "harness/commands/stored.hpp"
#include "harness/core/error.hpp"
#include "harness/core/reader.hpp"
#include "harness/exec/divergence.hpp"
#include "harness/report/golden.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSeed = 54907;
constexpr std::uint64_t kDrawn = 200;  // of an op that no built-in scenario is of
constexpr std::int64_t kLongest = 86400;

BisectCase case_of(const NamedCase& named) {
  return {named.id, named.file.name.empty() ? named.reference : named.file.name, case_to_json(*named.op, named.file.value),
          named.reference};
}

std::vector<BisectCase> cases_of(const std::vector<NamedCase>& all) {
  std::vector<BisectCase> cases;
  for (const NamedCase& named : all) {
    if (!named.file.value.stored.empty())
      throw InputError(named.reference +
                       ": its tensors lie in files beside it, and processes that run cases do not take those");
    cases.push_back(case_of(named));
  }
  return cases;
}

std::vector<BisectCase> drawn(const Context& context, const Lane& lane, std::uint64_t seed, std::uint64_t count) {
  CaseSource source(context.ops, lane, std::nullopt, seed);
  const Op& op = context.ops.at(lane.op);
  std::vector<BisectCase> cases;
  for (std::uint64_t index = 0; index < count; ++index) {
    context.check_interrupted();
    const Case value = source.at(index);
    cases.push_back({case_id(op, value), op.name + ", case " + std::to_string(index) + " of seed " + seed_text(seed),
                     case_to_json(op, value), ""});
  }
  return cases;
}

}  // namespace

std::vector<OptionSpec> bisect_options() {
  return {{"--kernel", "K", "lib:FILE, cubin:FILE or exec:COMMAND, {worktree} standing for the checkout; also OP=…", false},
          {"--build", "CMD", "Shell command that builds a checkout, in its folder; {worktree} stands for it", false},
          {"--case", "CASE", "Hold revisions to this case, a finding's, or those of a folder", true},
          {"--golden", "FILE", "… to the digests of a golden file", false},
          {"--law", "NAME", "… to this law, in place of judging every element", true},
          {"--fuzz", "N",
           "… to N generated cases of the kernel's op; default: the scenarios that are built in, and where there are none of "
           "the op 200 generated ones",
           false},
          {"--build-limit", "TIME", "A build that takes longer has failed (default 1h)", false},
          {"--case-limit", "TIME", "A case that takes longer hangs (default 60s)", false},
          {"--start-limit", "TIME", "… and the first one of a kernel in a process, which may compile (default 10m)", false},
          backend_option(),
          seed_option(),
          memory_option(),
          ops_option(),
          self_test_option()};
}

StepOptions step_options(const Arguments& arguments, Context& context, const RunSettings& settings) {
  StepOptions options;
  if (settings.kernels.size() != 1) throw InputError("--kernel is needed: what a checkout's kernel is called");
  options.kernel = settings.kernels.front();
  options.build = arguments.text("--build");
  for (const std::string& law : arguments.all("--law")) options.laws.push_back(law_named(law).name);
  if (options.laws.empty()) options.laws = {""};
  if (arguments.has("--golden")) {
    if (arguments.has("--case") || arguments.has("--law") || arguments.has("--fuzz"))
      throw InputError("--golden holds each case to its digests: it takes no --case, --law or --fuzz");
    std::error_code error;
    options.golden = fs::absolute(arguments.text("--golden"), error).string();
  }
  if (arguments.has("--case") && arguments.has("--fuzz")) throw InputError("--case and --fuzz each say what the cases are");
  options.worker.backend = settings.backend->name();
  options.worker.memory = settings.memory_text;
  // Processes run in folders of their own.
  for (const std::string& folder : context.op_folders) options.worker.op_folders.push_back(fs::absolute(folder).string());
  options.self_test = settings.self_test;
  options.program = this_program();
  options.build_limit = parse_time("--build-limit", arguments.text("--build-limit", "1h"), kLongest);
  options.case_limit = parse_time("--case-limit", arguments.text("--case-limit", "60s"), kLongest);
  options.start_limit = parse_time("--start-limit", arguments.text("--start-limit", "10m"), kLongest);
  options.interrupted = context.interrupted;
  return options;
}

std::vector<BisectCase> bisect_cases(const Arguments& arguments, Context& context, const RunSettings& settings,
                                     const std::function<Lane()>& lane) {
  const CaseRules rules{settings.seed, settings.memory};
  if (arguments.has("--case")) {
    std::vector<BisectCase> cases = cases_of(load_cases(context, arguments.all("--case"), rules));
    if (cases.empty()) throw InputError("--case: there is no *.json in what was named");
    return cases;
  }
  if (arguments.has("--golden")) {
    const std::string path = arguments.text("--golden");
    return cases_of(golden_cases(context, load_golden(path), path, settings.memory));
  }
  const Lane at_good = lane();
  if (!arguments.has("--fuzz")) {
    std::vector<NamedCase> scenarios = load_embedded(context, rules);
    std::erase_if(scenarios, [&](const NamedCase& named) { return named.op->name != at_good.op; });
    if (!scenarios.empty()) return cases_of(scenarios);
  }
  const std::uint64_t count = arguments.has("--fuzz") ? parse_cases("--fuzz", arguments.text("--fuzz")) : kDrawn;
  return drawn(context, at_good, settings.seed.value_or(kSeed), count);
}

std::string render(const BisectReport& report) {
  const BisectEnd& end = report.end;
  std::map<Standing, std::int64_t> counts;
  std::string lines = "\n";
  for (const Revision& one : end.tested) {
    ++counts[one.result.standing];
    const std::string digest = one.result.digest.empty() ? "-" : one.result.digest.substr(0, 8);
    std::string why = text::printable(one.result.why);
    std::replace(why.begin(), why.end(), '\n', ' ');
    lines += text::fit(one.commit.substr(0, 12), 14) + text::fit(std::string(name_of(one.result.standing)), 6) +
             text::fit(digest, 10) + (text::width(why) > text::kColumns - 30 ? text::fit(why, text::kColumns - 30) : why) +
             "\n";
  }
  std::string head;
  if (end.candidates.size() == 1) {
    head = "first bad commit: " + end.candidates.front().substr(0, 12) +
           (end.first_bad ? " (" + text::printable(end.first_bad->subject) + ")" : "");
  } else {
    std::vector<std::string> names;
    for (const std::string& commit : end.candidates) names.push_back(commit.substr(0, 12));
    head = "the first bad commit is one of " + text::list(names) + ": what lies between could not be told";
  }
  lines += "\n" + text::wrap(head, text::kColumns, 2);
  if (end.first_bad)
    for (const std::string& sentence : end.first_bad->result.what)
      lines += text::wrap("  " + text::printable(sentence), text::kColumns, 4);
  if (report.compared != json::Value()) {
    const Reader compared(report.compared, "compare's answer");
    std::string of = "From " + end.last_good->commit.substr(0, 12) + " to " + end.first_bad->commit.substr(0, 12);
    if (end.at < report.cases.size()) of += ", on " + text::printable(report.cases[end.at].name);
    const std::vector<Reader> places = compared.at("places").elements(), outputs = compared.at("outputs").elements();
    lines += text::wrap(of + (outputs.empty() ? ": what they leave is the same" : ":"), text::kColumns, 2);
    for (const Reader& place : places)
      lines += text::wrap("  " + text::printable(place_in_words(place_from_json(place))), text::kColumns, 4);
    if (places.empty() && !outputs.empty()) {
      std::vector<std::string> names;
      for (const Reader& output : outputs) names.push_back(output.string());
      lines += text::wrap("  These differ: " + text::list(names), text::kColumns, 4);
    }
  }
  if (!report.why_not.empty())
    lines += text::wrap("What they leave was not compared: " + text::printable(report.why_not), text::kColumns, 2);
  if (!report.replay.empty()) lines += report.replay + "\n";
  std::vector<std::string> parts;
  for (const auto& [standing, count] : counts) parts.push_back(std::to_string(count) + " " + std::string(name_of(standing)));
  return lines + text::count(std::ssize(end.tested), "revision") + " tested: " + text::list(parts) + "\n";
}

json::Value to_json(const BisectReport& report) {
  const BisectEnd& end = report.end;
  const auto told = [](const std::optional<Revision>& one) {
    return one ? json::Value(json::Object{{"commit", one->commit}, {"subject", one->subject}}) : json::Value();
  };
  json::Array revisions;
  for (const Revision& one : end.tested)
    revisions.push_back(json::Object{{"commit", one.commit},
                                     {"subject", one.subject},
                                     {"standing", std::string(name_of(one.result.standing))},
                                     {"why", one.result.why},
                                     {"what", array_of(one.result.what)},
                                     {"digest", json::text_or_null(one.result.digest)}});
  json::Value at;
  if (end.at < report.cases.size())
    at = json::Object{
        {"id", report.cases[end.at].id}, {"name", report.cases[end.at].name}, {"case", report.cases[end.at].value}};
  return json::Object{{"schema", "dcpcheck.bisect/1"},
                      {"first_bad", told(end.first_bad)},
                      {"last_good", told(end.last_good)},
                      {"candidates", array_of(end.candidates)},
                      {"case", std::move(at)},
                      {"revisions", std::move(revisions)},
                      {"compared", report.compared},
                      {"not_compared", json::text_or_null(report.why_not)},
                      {"replay", json::text_or_null(report.replay)}};
}

}  // namespace dcpcheck
