#include "harness/commands/golden.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>

#include "harness/commands/machine.hpp"
#include "harness/commands/select.hpp"
#include "harness/commands/suite.hpp"
#include "harness/core/error.hpp"
#include "harness/exec/workbench.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

constexpr std::size_t kPlaces = 3;  // outputs of an entry that are looked into

constexpr std::array kGoldenStatuses{
    GoldenStatus::same,    GoldenStatus::other_bits, GoldenStatus::outputs_differ,  GoldenStatus::inputs_differ,
    GoldenStatus::missing, GoldenStatus::added,      GoldenStatus::not_as_expected, GoldenStatus::skipped};

void refuse_wrong_bits(const Context& context, const RunSettings& settings) {
  const std::string difference = settings.self_test ? context.self_test(*settings.backend) : "";
  if (difference.empty()) return;
  throw HarnessError("the " + settings.backend->name() +
                     " backend does not compute the bits that it should, so nothing was run: " + difference);
}

std::optional<GoldenEnvironment> environment_of(const Kernel& kernel, const RunSettings& settings) {
  if (!kernel.declared) return std::nullopt;
  const bool cuda = settings.backend->name() == "cuda";
  const Machine machine = describe_machine(settings.threads, cuda ? settings.backend.get() : nullptr);
  GoldenEnvironment environment;
  environment.kernel = kernel.declared->name.empty() ? kernel.name : kernel.declared->name;
  environment.architecture = cuda ? machine.device.value_or("unknown") : machine.cpu;
  environment.driver = machine.driver;
  if (cuda) environment.cuda = machine.cuda;
  return environment;
}

std::string case_name(const NamedCase& named) {
  return text::printable(named.file.name.empty() ? named.reference : named.file.name);
}

// The one of `selected` that cases of `op` run on; nullptr where there is none. Throws InputError where there are two.
const Kernel* chosen_for(const Op& op, const std::vector<const Kernel*>& selected) {
  const Kernel* chosen = nullptr;
  for (const Kernel* kernel : selected) {
    if (!runs_on(op, *kernel)) continue;
    if (chosen != nullptr)
      throw InputError("--kernel: a golden has one kernel for a case, and " + chosen->name + " and " + kernel->name +
                       " both run on cases of " + op.name);
    chosen = kernel;
  }
  return chosen;
}

// Cases one after the other, on any kernels.
class Runner {
 public:
  Runner(Context& context, const RunSettings& settings)
      : context_(context), settings_(settings), bench_(bench_of(context, settings, settings.threads)) {
    options_.threads = settings.threads;
    options_.portable = true;
    options_.interrupted = context.interrupted;
  }

  bool can_run(const NamedCase& named, const Kernel& kernel) const { return dcpcheck::can_run(bench_, *named.op, kernel); }

  void prepare(const NamedCase& named) {
    context_.check_interrupted();
    prepared_ = dcpcheck::prepare(*named.op, context_.references.at(named.op->name), named.file.value, settings_.memory,
                                  settings_.threads, named.reference);
  }
  const std::string& inputs() const { return prepared_->inputs_digest; }

  CaseResult run(const Kernel& kernel) { return judge(bench_, *prepared_, kernel, options_, answers_); }

  std::optional<Divergence> diverges(std::int64_t rank, const std::string& buffer, const std::string& digest,
                                     const std::vector<const Kernel*>& others, const Kernel& now) {
    return first_divergence(*prepared_, rank, buffer, digest, others, now, *settings_.backend, options_);
  }

 private:
  Context& context_;
  const RunSettings& settings_;
  Workbench bench_;
  RunOptions options_;
  ReferenceMemory answers_;
  std::optional<Prepared> prepared_;
};

GoldenEntry entry_of(const NamedCase& named, const Kernel& kernel, const RunSettings& settings, const CaseResult& result) {
  GoldenEntry entry;
  entry.id = named.id;
  entry.name = named.file.name;
  entry.op = named.op->name;
  entry.kernel = kernel.name;
  entry.contract = named.file.value.contract;
  entry.environment = environment_of(kernel, settings);
  entry.inputs = result.inputs_digest;
  const auto portable = [&](const std::string& name) {
    const auto found = result.portable.find(name);
    return found == result.portable.end() ? std::string() : found->second;
  };
  for (const auto& [name, digest] : result.outputs) entry.outputs[name] = {digest, portable(name)};
  if (result.tokens) {
    entry.outputs["tokens"] = {result.tokens->digest, portable("tokens")};
    entry.tokens = result.tokens->ids;
  }
  return entry;
}

// What a violation is of, as outputs are named.
std::string output_of(const Violation& violation) {
  const std::string phase = violation.stage.substr(0, violation.stage.find('.'));
  return "rank" + std::to_string(violation.rank) + "/" + (phase.empty() ? "" : phase + "." + violation.op + ".") +
         violation.buffer;
}

// The first wrong element, as the verdict has it.
GoldenFinding::Place judged_place(const Violation& violation) {
  const Element& element = violation.first.front();
  GoldenFinding::Place place{output_of(violation), {}, false};
  place.at = {violation.tokens.empty() ? -1 : violation.tokens.front().first,
              element.index,
              element.field,
              element.admissible,
              element.got,
              violation.count};
  return place;
}

std::optional<GoldenFinding::Place> judged_place(const std::string& output, const Verdict& verdict) {
  for (const Violation& violation : verdict.violations)
    if (!violation.first.empty() && output_of(violation) == output) return judged_place(violation);
  return std::nullopt;
}

std::optional<std::string> tokens_in_words(const GoldenEntry& was, const GoldenEntry& is) {
  if (!was.tokens || !is.tokens) return std::nullopt;
  const auto step = first_difference(*was.tokens, *is.tokens);
  if (!step) return std::nullopt;
  const auto at = static_cast<std::size_t>(*step);
  for (std::size_t request = 0; request < std::max(was.tokens->size(), is.tokens->size()); ++request) {
    const auto token = [&](const GoldenEntry& entry) {
      const auto& all = *entry.tokens;
      return request < all.size() && at < all[request].size() ? std::to_string(all[request][at]) : std::string("none");
    };
    if (token(was) != token(is))
      return "tokens differ from step " + std::to_string(*step) + " on, of request " + std::to_string(request) + ": " +
             token(was) + " was, " + token(is) + " is";
  }
  return std::nullopt;
}

GoldenStatus status_of(GoldenChange change) {
  switch (change) {
    case GoldenChange::none: return GoldenStatus::same;
    case GoldenChange::bits: return GoldenStatus::other_bits;
    case GoldenChange::outputs: return GoldenStatus::outputs_differ;
    case GoldenChange::inputs: return GoldenStatus::inputs_differ;
  }
  return GoldenStatus::outputs_differ;
}

GoldenFinding finding_of(const GoldenEntry& was, const GoldenEntry& is) {
  GoldenFinding finding{is.id, is.name, is.op, is.kernel, {}, {}, {}, {}};
  GoldenDifference difference = difference_of(was, is);
  finding.status = status_of(difference.change);
  finding.outputs = std::move(difference.outputs);
  if (finding.status == GoldenStatus::inputs_differ)
    finding.details.push_back("inputs differ: " + was.inputs.substr(0, 8) + " was, " + is.inputs.substr(0, 8) +
                              " is; what makes them has changed, and outputs cannot be compared");
  if (finding.status == GoldenStatus::outputs_differ)
    if (auto tokens = tokens_in_words(was, is)) finding.details.push_back(std::move(*tokens));
  return finding;
}

// Looks for the elements behind the digests that differ.
void locate(GoldenFinding& finding, const GoldenEntry& was, const CaseResult& now, const Kernel& kernel, const Context& context,
            Runner& runner) {
  if (was.tokens) {  // of a pipeline: where it broke, which is before most of what differs
    for (const Violation& violation : now.verdict.violations)
      if (!violation.stage.empty() && !violation.first.empty() && finding.places.size() < kPlaces)
        finding.places.push_back(judged_place(violation));
    return;
  }
  std::vector<const Kernel*> others;
  for (const Kernel& known : context.kernels)
    if (known.name == was.kernel && !was.environment && &known != &kernel) others.push_back(&known);
  std::size_t looked = 0;
  for (const std::string& output : finding.outputs) {
    if (output == "tokens" || looked++ >= kPlaces) continue;
    const auto before = was.outputs.find(output);
    if (before == was.outputs.end() || !now.outputs.contains(output)) {
      finding.details.push_back(output + (before == was.outputs.end() ? ": was not there before" : ": is not there any more"));
      continue;
    }
    const auto [rank, buffer] = parts_of(output);
    if (auto at = rank < 0 ? std::nullopt : runner.diverges(rank, buffer, before->second.raw, others, kernel)) {
      finding.places.push_back({output, std::move(*at), true});
    } else if (auto place = judged_place(output, now.verdict)) {
      finding.places.push_back(std::move(*place));
    } else {
      finding.details.push_back(output +
                                ": other bits, each of which a right kernel may have; a digest does not say which they were");
    }
  }
}

GoldenFinding check(const GoldenEntry& was, const NamedCase& named, const Kernel& kernel, const Context& context,
                    const RunSettings& settings, Runner& runner) {
  GoldenFinding skipped{was.id, was.name, was.op, kernel.name, GoldenStatus::skipped, {}, {}, {}};
  if (!runner.can_run(named, kernel)) {
    skipped.details = {kernel.name + " cannot run on the " + settings.backend->name() + " backend"};
    return skipped;
  }
  runner.prepare(named);
  if (runner.inputs() != was.inputs) {
    GoldenEntry is = was;
    is.kernel = kernel.name;
    is.inputs = runner.inputs();
    return finding_of(was, is);
  }
  const CaseResult now = runner.run(kernel);
  if (now.verdict.status == Status::skipped) {
    skipped.details = {now.verdict.detail};
    return skipped;
  }
  GoldenFinding finding = finding_of(was, entry_of(named, kernel, settings, now));
  if (finding.status == GoldenStatus::outputs_differ) locate(finding, was, now, kernel, context, runner);
  if (now.verdict.status != Status::pass) {
    if (!is_failure(finding.status)) finding.status = GoldenStatus::not_as_expected;
    finding.details.push_back("the kernel comes to " + std::string(name_of(now.verdict.status)) + " (" +
                              std::string(name_of(now.verdict.reason)) + ")" +
                              (now.verdict.detail.empty() ? "" : ": " + now.verdict.detail));
  }
  return finding;
}

}  // namespace

std::pair<std::int64_t, std::string> parts_of(const std::string& output) {
  const std::size_t slash = output.find('/');
  if (slash == std::string::npos || !output.starts_with("rank")) return {-1, output};
  return {std::stoll(output.substr(4, slash - 4)), output.substr(slash + 1)};
}

std::string place_in_words(const GoldenFinding::Place& place) {
  const auto [rank, buffer] = parts_of(place.output);
  std::string index;
  for (const std::int64_t i : place.at.index) index += (index.empty() ? "" : ", ") + std::to_string(i);
  std::string line = buffer + ", rank " + std::to_string(rank) + ": ";
  if (place.at.token >= 0) line += "token " + std::to_string(place.at.token) + ", ";
  line += "element [" + index + "]" + (place.at.field.empty() ? "" : " of " + place.at.field) + ": " +
          (place.known ? "was " : "should be ") + place.at.was + ", is " + place.at.is;
  return line + "; " + text::count(place.at.count, place.known ? "element" : "place") + (place.known ? " differ" : "") +
         (place.known && place.at.count == 1 ? "s" : "");
}

json::Value to_json(const GoldenFinding::Place& place) {
  return json::Object{{"output", place.output},
                      {"token", place.at.token < 0 ? json::Value() : json::Value(place.at.token)},
                      {"index", json::numbers(place.at.index)},
                      {"field", place.at.field},
                      {place.known ? "was" : "admissible", place.at.was},
                      {"is", place.at.is},
                      {"count", place.at.count}};
}

GoldenFinding::Place place_from_json(const Reader& place) {
  GoldenFinding::Place out;
  out.output = place.at("output").string();
  out.at.token = place.at("token").value().get<std::nullptr_t>() ? -1 : place.at("token").count();
  for (const Reader& i : place.at("index").elements()) out.at.index.push_back(i.count());
  out.at.field = place.at("field").string();
  const auto was = place.find("was");
  out.known = was.has_value();
  out.at.was = (was ? *was : place.at("admissible")).string();
  out.at.is = place.at("is").string();
  out.at.count = place.at("count").count();
  return out;
}

std::string_view name_of(GoldenStatus status) {
  switch (status) {
    case GoldenStatus::same: return "same";
    case GoldenStatus::other_bits: return "other-bits";
    case GoldenStatus::outputs_differ: return "outputs-differ";
    case GoldenStatus::inputs_differ: return "inputs-differ";
    case GoldenStatus::missing: return "missing";
    case GoldenStatus::added: return "added";
    case GoldenStatus::not_as_expected: return "not-as-expected";
    case GoldenStatus::skipped: return "skipped";
  }
  return "";
}

bool is_failure(GoldenStatus status) {
  return status != GoldenStatus::same && status != GoldenStatus::other_bits && status != GoldenStatus::skipped;
}

std::vector<NamedCase> cases_at(const Context& context, const std::string& where, std::int64_t memory) {
  const CaseRules rules{std::nullopt, memory};
  return where == kBuiltInCases ? load_embedded(context, rules) : load_cases(context, {where}, rules);
}

std::vector<NamedCase> golden_cases(const Context& context, const Golden& golden, const std::string& path,
                                    std::int64_t memory) {
  namespace fs = std::filesystem;
  if (golden.cases == kBuiltInCases || fs::path(golden.cases).is_absolute()) return cases_at(context, golden.cases, memory);
  return cases_at(context, (fs::path(path).parent_path() / golden.cases).lexically_normal().generic_string(), memory);
}

GoldenMade make_golden(Context& context, const RunSettings& settings, const std::vector<NamedCase>& cases) {
  const std::vector<const Kernel*> selected = select_kernels(context, settings.kernels);
  refuse_wrong_bits(context, settings);
  Runner runner(context, settings);
  GoldenMade made;
  for (const NamedCase& named : cases) {
    const Kernel* const kernel =
        selected.empty() ? fixed_kernel(context.kernels, named.op->name) : chosen_for(*named.op, selected);
    if (kernel == nullptr) {
      made.left_out.push_back(case_name(named) + ": no kernel of " + named.op->name + " was asked for");
      continue;
    }
    if (!runner.can_run(named, *kernel)) {
      made.left_out.push_back(case_name(named) + ": " + kernel->name + " cannot run on the " + settings.backend->name() +
                              " backend");
      continue;
    }
    runner.prepare(named);
    const CaseResult result = runner.run(*kernel);
    if (result.verdict.status == Status::skipped) {
      made.left_out.push_back(case_name(named) + ": " + result.verdict.detail);
    } else if (result.verdict.status != Status::pass) {
      made.complaints.push_back(case_name(named) + ": " + kernel->name + " comes to " +
                                std::string(name_of(result.verdict.status)) + " (" +
                                std::string(name_of(result.verdict.reason)) + "), and a golden is of what passes");
    } else {
      made.entries.push_back(entry_of(named, *kernel, settings, result));
    }
  }
  context.check_interrupted();
  return made;
}

GoldenCheck verify_golden(Context& context, const RunSettings& settings, const Golden& golden,
                          const std::vector<NamedCase>& cases) {
  // All kernels before any is run: loading one moves those that there are.
  std::vector<std::string> specs = settings.kernels;
  if (specs.empty())
    for (const GoldenEntry& entry : golden.entries)
      if (std::find(specs.begin(), specs.end(), entry.kernel) == specs.end()) specs.push_back(entry.kernel);
  const std::vector<const Kernel*> selected = select_kernels(context, specs);
  refuse_wrong_bits(context, settings);
  Runner runner(context, settings);
  std::map<std::string, const NamedCase*> by_id, by_name;
  for (const NamedCase& named : cases) {
    by_id.emplace(named.id, &named);
    by_name.emplace(named.file.name, &named);
  }
  GoldenCheck all;
  for (const GoldenEntry& entry : golden.entries) {
    context.check_interrupted();
    GoldenFinding finding{entry.id, entry.name, entry.op, entry.kernel, {}, {}, {}, {}};
    const auto found = by_id.find(entry.id);
    if (found == by_id.end()) {
      finding.status = GoldenStatus::missing;
      const auto other = by_name.find(entry.name);
      finding.details.push_back(other == by_name.end() || entry.name.empty()
                                    ? "there is no such case any more"
                                    : "the case of that name is another one now, " + other->second->id);
      all.findings.push_back(std::move(finding));
      continue;
    }
    const NamedCase& named = *found->second;
    const Kernel* kernel = nullptr;
    if (settings.kernels.empty()) {
      for (const Kernel* one : selected)
        if (one->name == entry.kernel) kernel = one;
    } else {
      kernel = chosen_for(*named.op, selected);
    }
    if (kernel == nullptr) {
      finding.status = GoldenStatus::skipped;
      finding.details.push_back("no kernel of " + entry.op + " was asked for");
      all.findings.push_back(std::move(finding));
      continue;
    }
    all.findings.push_back(check(entry, named, *kernel, context, settings, runner));
  }
  for (const NamedCase& named : cases) {
    const auto is_it = [&](const GoldenEntry& entry) { return entry.id == named.id; };
    if (std::none_of(golden.entries.begin(), golden.entries.end(), is_it)) all.without.push_back(case_name(named));
  }
  return all;
}

GoldenCheck compare_goldens(const Golden& was, const Golden& is) {
  std::map<std::string, const GoldenEntry*> before, after;
  for (const GoldenEntry& entry : was.entries) before.emplace(entry.id, &entry);
  for (const GoldenEntry& entry : is.entries) after.emplace(entry.id, &entry);
  GoldenCheck all;
  for (const GoldenEntry& entry : was.entries) {
    if (const auto found = after.find(entry.id); found != after.end()) {
      all.findings.push_back(finding_of(entry, *found->second));
    } else {
      all.findings.push_back(
          {entry.id, entry.name, entry.op, entry.kernel, GoldenStatus::missing, {}, {}, {"it is in the first file alone"}});
    }
  }
  for (const GoldenEntry& entry : is.entries)
    if (!before.contains(entry.id))
      all.findings.push_back(
          {entry.id, entry.name, entry.op, entry.kernel, GoldenStatus::added, {}, {}, {"it is in the second file alone"}});
  return all;
}

int exit_code(const GoldenCheck& check) {
  const auto& all = check.findings;
  if (std::any_of(all.begin(), all.end(), [](const GoldenFinding& one) { return is_failure(one.status); })) return 1;
  if (std::any_of(all.begin(), all.end(), [](const GoldenFinding& one) { return one.status != GoldenStatus::skipped; }))
    return 0;
  return all.empty() ? 3 : 77;
}

std::string render(const GoldenCheck& check) {
  std::string page;
  std::map<GoldenStatus, std::int64_t> counts;
  std::map<std::string, std::vector<std::string>> skipped;  // by why
  for (const GoldenFinding& finding : check.findings) {
    ++counts[finding.status];
    if (finding.status == GoldenStatus::same) continue;
    if (finding.status == GoldenStatus::skipped) {
      skipped[text::list(finding.details)].push_back(text::printable(finding.name.empty() ? finding.id : finding.name));
      continue;
    }
    page += text::wrap(text::printable(finding.name.empty() ? finding.id : finding.name) + ", " + text::printable(finding.op) +
                           ", " + text::printable(finding.kernel) + ": " + std::string(name_of(finding.status)),
                       text::kColumns, 2);
    if (!finding.outputs.empty()) {
      constexpr std::size_t kShown = 8;
      std::vector<std::string> shown(finding.outputs.begin(), finding.outputs.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                                            kShown, finding.outputs.size())));
      if (finding.outputs.size() > kShown) shown.push_back(std::to_string(finding.outputs.size() - kShown) + " more");
      page += text::wrap("  " + text::printable(text::list(shown)), text::kColumns, 4);
    }
    for (const GoldenFinding::Place& place : finding.places)
      page += text::wrap("  " + text::printable(place_in_words(place)), text::kColumns, 4);
    for (const std::string& detail : finding.details) page += text::wrap("  " + text::printable(detail), text::kColumns, 4);
  }
  for (const auto& [why, names] : skipped)
    page += text::wrap("skipped, as " + text::printable(why) + ": " + text::list(names), text::kColumns, 2);
  if (!check.without.empty())
    page += text::wrap(text::count(std::ssize(check.without), "case") + " without a golden: " + text::list(check.without),
                       text::kColumns, 2);
  std::vector<std::string> parts;
  for (const GoldenStatus status : kGoldenStatuses)
    if (counts[status] > 0) parts.push_back(std::to_string(counts[status]) + " " + std::string(name_of(status)));
  const std::int64_t total = std::ssize(check.findings);
  return page + text::wrap(std::to_string(total) + (total == 1 ? " entry: " : " entries: ") +
                               (parts.empty() ? "none" : text::list(parts)),
                           text::kColumns);
}

json::Value to_json(const GoldenCheck& check) {
  using json::Array;
  using json::Object;
  std::map<GoldenStatus, std::int64_t> counts;
  Array findings;
  for (const GoldenFinding& finding : check.findings) {
    ++counts[finding.status];
    Array places;
    for (const GoldenFinding::Place& place : finding.places) places.emplace_back(to_json(place));
    findings.emplace_back(Object{{"id", finding.id},
                                 {"name", finding.name},
                                 {"op", finding.op},
                                 {"kernel", finding.kernel},
                                 {"status", name_of(finding.status)},
                                 {"outputs", Array(finding.outputs.begin(), finding.outputs.end())},
                                 {"places", std::move(places)},
                                 {"details", Array(finding.details.begin(), finding.details.end())}});
  }
  Object summary;
  for (const GoldenStatus status : kGoldenStatuses) summary.emplace_back(std::string(name_of(status)), counts[status]);
  summary.emplace_back("ok", exit_code(check) == 0);
  return Object{{"schema", "dcpcheck.golden_check/1"},
                {"findings", std::move(findings)},
                {"without_golden", Array(check.without.begin(), check.without.end())},
                {"summary", std::move(summary)}};
}

}  // namespace dcpcheck
