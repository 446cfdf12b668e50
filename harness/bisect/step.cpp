#include "harness/bisect/step.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "harness/bisect/program.hpp"
#include "harness/campaign/schedule.hpp"
#include "harness/campaign/state.hpp"
#include "harness/campaign/words.hpp"
#include "harness/campaign/worker_link.hpp"
#include "harness/core/digest.hpp"
#include "harness/core/error.hpp"
#include "harness/core/reader.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWorktree = "{worktree}", kProcess = "exec:";
constexpr json::Limits kLimits{std::size_t{64} << 20, 32};

StepResult skipped(std::string why) {
  StepResult result;
  result.why = std::move(why);
  return result;
}

bool lies_in(const fs::path& file, const fs::path& folder) {
  std::error_code error;
  const fs::path inner = fs::weakly_canonical(file, error), outer = fs::weakly_canonical(folder, error);
  const auto [end, at] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  return end == outer.end();
}

std::vector<std::string> words_of_worker(const StepOptions& options, const std::vector<std::string>& kernels) {
  CampaignSpec spec = options.worker;
  spec.kernels = kernels;
  std::vector<std::string> words{options.program};
  for (std::string& word : worker_words(spec)) words.push_back(std::move(word));
  if (!options.self_test) words.emplace_back("--no-self-test");
  return words;
}

WorkerOptions worker_options(const StepOptions& options, const std::vector<std::string>& kernels) {
  WorkerOptions how;
  how.words = words_of_worker(options, kernels);
  how.case_limit = options.case_limit;
  how.start_limit = options.start_limit;
  how.interrupted = options.interrupted;
  return how;
}

// Where a kernel's code comes from has to be what was checked out: a copy that is installed elsewhere answers alike at every
// revision.
void check_source(const StepOptions& options, const std::string& kernel, const std::string& source, const fs::path& folder) {
  const std::size_t colon = kernel.find(':');
  std::size_t begin = 0;  // past "<op>="
  if (const std::size_t equals = kernel.find('='); equals < colon) begin = equals + 1;
  const std::string_view kind = std::string_view(kernel).substr(begin, colon == std::string::npos ? 0 : colon + 1 - begin);
  const std::string advice = ", outside the worktree: every revision would be judged by that one";
  if (kind == kProcess) {
    if (!lies_in(source, folder))
      throw InputError("--kernel " + text::printable(kernel) + ": its ready message says that it has loaded " +
                       text::printable(source) + advice);
    return;
  }
  if (kind.empty() || kind == "builtin:")
    throw InputError("--kernel " + text::printable(kernel) + " is one that comes with dcpcheck, which no revision changes");
  // A build may put its library anywhere, and does so anew for each revision.
  const std::string file = kernel.substr(colon + 1);
  if (options.build.empty() && !lies_in(file, folder))
    throw InputError("--kernel " + text::printable(kernel) + ": it is " + text::printable(file) + advice);
}

// A process with the kernel; none where it cannot be loaded, and why not, a phrase.
struct Loaded {
  std::unique_ptr<WorkerLink> worker;
  Lane lane;
  std::string why;
};

Loaded load(const StepOptions& options, const fs::path& folder) {
  const std::string kernel = kernel_in(options.kernel, folder), source = "a worker's answer";
  Loaded loaded;
  try {
    loaded.worker = std::make_unique<WorkerLink>(worker_options(options, {kernel}));
  } catch (const InputError& refused) {
    loaded.why = refused.what();
    return loaded;
  } catch (const HarnessError& died) {
    loaded.why = std::string("the kernel cannot be loaded: ") + died.what();
    return loaded;
  }
  const Reader hello(loaded.worker->hello(), source);
  std::vector<Lane> lanes = lanes_from_json(hello.at("lanes").value(), source);
  if (lanes.size() != 1)
    throw InputError("bisect takes one kernel, and " + text::printable(kernel) + " names " + std::to_string(lanes.size()));
  check_source(options, kernel, words_of(hello.at("sources")).front(), folder);
  loaded.lane = std::move(lanes.front());
  return loaded;
}

std::string phrase_of(const Check& check) {
  std::string phrase{name_of(check.status)};
  if (!check.reason.empty() && check.reason != phrase) phrase += " (" + check.reason + ")";
  if (!check.law.empty()) phrase += " of " + check.law;
  if (!check.buffer.empty()) phrase += ", " + check.buffer;
  return phrase;
}

StepResult bad_of(const Check& check, std::size_t at) {
  StepResult result;
  result.standing = Standing::bad;
  result.why = phrase_of(check);
  result.what = check.what;
  if (result.what.empty() && !check.detail.empty()) result.what = {check.detail};
  if (check.all_digest != sha256_hex("")) result.digest = check.all_digest;  // it left something
  result.at = at;
  return result;
}

StepResult examine_cases(const StepOptions& options, std::unique_ptr<WorkerLink> worker, const WorkerOptions& how,
                         const std::vector<std::size_t>& cases, Extent extent) {
  std::optional<StepResult> passed, failed;
  std::string undecided;
  for (const std::size_t at : cases) {
    if (!worker->alive()) worker = std::make_unique<WorkerLink>(how);
    const std::vector<Check> checks = worker->examine(0, options.cases[at].value, options.laws);
    bool passes = !checks.empty();
    for (const Check& check : checks) {
      passes = passes && check.status == Status::pass;
      if (is_finding(check.status)) {
        if (extent == Extent::first_failure) return bad_of(check, at);
        if (!failed) failed = bad_of(check, at);
        continue;
      }
      if (check.status != Status::pass && undecided.empty())
        undecided = phrase_of(check) + (check.detail.empty() ? "" : ": " + check.detail);
    }
    if (!passes) continue;
    if (!passed) passed = StepResult{Standing::good, "pass", {}, checks.front().all_digest, at, {}};
    if (extent == Extent::every_case) passed->passed.push_back(at);
  }
  if (passed) return *passed;
  if (failed) return *failed;
  return skipped(undecided.empty() ? "no case was run" : undecided);
}

StepResult verify_golden(const StepOptions& options, const std::string& kernel, const std::string& log) {
  const std::vector<std::string> words =
      program_words(options, {"golden", "verify", options.golden, "--kernel", kernel, "--json", "-"});
  ProgramOptions how;
  how.limit = options.start_limit + options.case_limit * static_cast<std::int64_t>(options.cases.size());
  how.interrupted = options.interrupted;
  // It is no revision's, so that none can be blamed where it has gone.
  if (std::error_code error; !fs::exists(options.golden, error))
    throw HarnessError(options.golden + " has gone while revisions were held to it");
  const ProgramEnd end = run_program(words, how);
  StepResult result;
  if (end.late || end.signal != 0) {  // the kernel's doing: it was loaded in a process of its own just before
    result.standing = Standing::bad;
    result.why = (end.late ? "hang: " : "crash: ") + how_it_ended(end, how.limit);
    if (std::string last = last_words(end.err); !last.empty()) result.what = {std::move(last)};
    return result;
  }
  if (end.code == 2) return skipped(last_words(end.err));
  if (end.code != 0 && end.code != 1 && end.code != 77)
    throw HarnessError("dcpcheck golden verify ended with " + how_it_ended(end, {}) + " (its words are in " + log +
                       "): " + last_words(end.err));
  if (end.code == 77) return skipped("the kernel is for none of the golden's cases");
  const json::Value document = json::parse(end.out, "golden verify's answer", kLimits);
  result.standing = end.code == 0 ? Standing::good : Standing::bad;
  result.why = end.code == 0 ? "the golden's digests" : "other outputs than the golden's";
  if (result.standing == Standing::good) return result;
  for (const Reader& finding : Reader(document, "golden verify's answer").at("findings").elements()) {
    const std::string status = finding.at("status").string();
    if (status == "same" || status == "other-bits" || status == "skipped") continue;
    result.why = status;
    const std::string id = finding.at("id").string();
    for (std::size_t i = 0; i < options.cases.size(); ++i)
      if (options.cases[i].id == id && !result.at) result.at = i;
    for (const Reader& sentence : finding.at("details").elements()) result.what.push_back(sentence.string());
    break;
  }
  return result;
}

}  // namespace

std::string_view name_of(Standing standing) {
  switch (standing) {
    case Standing::good: return "good";
    case Standing::bad: return "bad";
    case Standing::skip: return "skip";
  }
  return "";
}

Standing standing_named(const std::string& name, const std::string& source) {
  for (const Standing one : {Standing::good, Standing::bad, Standing::skip})
    if (name_of(one) == name) return one;
  throw InputError(source + ": '" + text::printable(name) + "' is not good, bad or skip");
}

json::Value to_json(const StepResult& result) {
  json::Array passed;
  for (const std::size_t at : result.passed) passed.emplace_back(static_cast<std::int64_t>(at));
  return json::Object{{"standing", std::string(name_of(result.standing))},
                      {"why", result.why},
                      {"what", array_of(result.what)},
                      {"digest", json::text_or_null(result.digest)},
                      {"case", result.at ? json::Value(static_cast<std::int64_t>(*result.at)) : json::Value()},
                      {"passed", std::move(passed)}};
}

StepResult step_from_json(const json::Value& value, const std::string& source) {
  const Reader reader(value, source);
  StepResult result;
  result.standing = standing_named(reader.at("standing").string(), source);
  result.why = reader.at("why").string();
  result.what = words_of(reader.at("what"));
  if (!reader.at("digest").value().get<std::nullptr_t>()) result.digest = reader.at("digest").string();
  if (!reader.at("case").value().get<std::nullptr_t>()) result.at = static_cast<std::size_t>(reader.at("case").count());
  for (const Reader& at : reader.at("passed").elements()) result.passed.push_back(static_cast<std::size_t>(at.count()));
  return result;
}

std::string in_worktree(const std::string& text, const fs::path& folder, bool shell) {
  std::string out = text;
  const std::string path = shell ? text::shell_quote(folder.string()) : folder.string();
  for (std::size_t at = out.find(kWorktree); at != std::string::npos; at = out.find(kWorktree, at + path.size()))
    out.replace(at, kWorktree.size(), path);
  return out;
}

std::string kernel_in(const std::string& spec, const fs::path& folder) {
  const std::size_t equals = spec.find('='), colon = spec.find(':');
  const std::size_t begin = equals < colon ? equals + 1 : 0;
  return in_worktree(spec, folder, spec.compare(begin, kProcess.size(), kProcess) == 0);
}

std::vector<std::string> program_words(const StepOptions& options, const std::vector<std::string>& verb) {
  std::vector<std::string> words{options.program};
  words.insert(words.end(), verb.begin(), verb.end());
  words.insert(words.end(), {"--backend", options.worker.backend});
  for (const std::string& ops : options.worker.op_folders) words.insert(words.end(), {"--ops", ops});
  if (!options.worker.memory.empty()) words.insert(words.end(), {"--memory", options.worker.memory});
  if (!options.self_test) words.emplace_back("--no-self-test");
  return words;
}

std::string build(const StepOptions& options, const fs::path& folder, const std::string& log) {
  if (options.build.empty() || options.built) return "";
  ProgramOptions how;
  how.folder = folder.string();
  how.log = log;
  how.limit = options.build_limit;
  how.interrupted = options.interrupted;
  const ProgramEnd end = run_program({"/bin/sh", "-c", in_worktree(options.build, folder, true)}, how);
  if (end.ok()) return "";
  return "it does not build: " + how_it_ended(end, options.build_limit);
}

std::optional<Lane> lane_in(const StepOptions& options, const fs::path& folder, std::string& why) {
  Loaded loaded = load(options, folder);
  why = loaded.why;
  if (loaded.worker == nullptr) return std::nullopt;
  return loaded.lane;
}

StepResult step(const StepOptions& options, const fs::path& folder, const std::string& log,
                const std::vector<std::size_t>& only, Extent extent) {
  if (std::string why = build(options, folder, log); !why.empty()) return skipped(std::move(why));
  Loaded loaded = load(options, folder);
  if (loaded.worker == nullptr) return skipped(std::move(loaded.why));
  if (!options.golden.empty()) {
    loaded.worker.reset();
    return verify_golden(options, kernel_in(options.kernel, folder), log);
  }
  std::vector<std::size_t> cases = only;
  if (cases.empty())
    for (std::size_t at = 0; at < options.cases.size(); ++at) cases.push_back(at);
  return examine_cases(options, std::move(loaded.worker), worker_options(options, {kernel_in(options.kernel, folder)}), cases,
                       extent);
}

void check_harness(const StepOptions& options) { const WorkerLink worker(worker_options(options, {})); }

}  // namespace dcpcheck
