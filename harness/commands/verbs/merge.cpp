#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "harness/campaign/campaign_report.hpp"
#include "harness/campaign/journal.hpp"
#include "harness/commands/context.hpp"
#include "harness/commands/lanes.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/verb.hpp"
#include "harness/core/error.hpp"
#include "harness/report/output.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck::verbs {
namespace {

namespace fs = std::filesystem;

std::string in(const std::string& folder, const char* name) { return (fs::path(folder) / name).string(); }

// The shards' findings in one folder: of those that several have the one of the least number.
void gather_findings(const Ops& ops, const std::vector<std::string>& folders, const std::string& into) {
  std::error_code error;
  fs::create_directories(into, error);
  if (error) throw InputError(text::printable(into) + ": " + error.message());
  std::map<std::string, Finding> least;
  for (const std::string& folder : folders) {
    fs::directory_iterator entries(in(folder, "findings"), error);
    if (error) continue;  // a shard that found nothing may have none
    for (; entries != fs::directory_iterator(); entries.increment(error)) {
      if (error) throw InputError(text::printable(folder) + ": its findings cannot be listed: " + error.message());
      if (entries->path().extension() != ".json") continue;
      const std::string path = entries->path().string();
      Finding finding = finding_from_json(ops, json::parse(json::text_of(path), path), path);
      const auto [at, added] = least.emplace(finding.id, finding);
      if (!added && finding.number < at->second.number) at->second = std::move(finding);
    }
  }
  // What an earlier merge of other shards has left would pass for one of these.
  for (fs::directory_iterator there(into, error), end; !error && there != end; there.increment(error))
    if (there->path().extension() == ".json" && !least.contains(there->path().stem().string()))
      throw InputError(text::printable(there->path().string()) +
                       " is no finding of these shards: --out needs a folder of its own");
  for (const auto& entry : least) write_finding(ops, into, entry.second);
}

json::Array runs_of(const std::string& folder) {
  const std::string path = in(folder, "report.json");
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  json::Limits limits;
  limits.bytes = std::size_t{64} << 20;
  limits.depth = 64;
  const json::Value report = json::parse(json::text_of(path), path, limits);
  const json::Value* runs = report.find("runs");
  const auto* array = runs == nullptr ? nullptr : runs->get<json::Array>();
  return array == nullptr ? json::Array{} : *array;
}

int run_merge(const Arguments& arguments, Context& context) {
  const JsonTarget target(arguments, context);
  const std::string out = arguments.text("--out");
  if (out.empty()) throw InputError("merge needs --out DIR, where the shards come together");
  const std::vector<Known> known = arguments.has("--known") ? load_known(arguments.text("--known")) : std::vector<Known>{};
  std::vector<CampaignState> shards;
  CampaignReport report;
  json::Array runs;
  for (const std::string& folder : arguments.operands) {
    std::error_code error;
    if (fs::equivalent(folder, out, error))
      throw InputError("--out " + text::printable(out) + " is a shard that is to be merged");
    const JournalContents contents = read_journal(in(folder, "journal"));
    if (!contents.torn.empty()) *context.err << "dcpcheck: " << contents.torn << "\n";
    shards.push_back(state_of(contents.records, in(folder, "journal")));
    for (json::Value& run : runs_of(folder)) runs.push_back(std::move(run));
  }
  report.state = merged(shards, arguments.operands, arguments.has("--partial"));
  report.runs = std::move(runs);
  const std::string findings = in(out, "findings");
  gather_findings(context.ops, arguments.operands, findings);
  const std::optional<Case> base =
      base_case(context, memory_of(report.state.spec.memory), report.state.spec.base, report.state.spec.settings);
  std::vector<std::unique_ptr<CaseSource>> sources;
  for (const Lane& lane : report.state.lanes)
    sources.push_back(std::make_unique<CaseSource>(context.ops, lane, base, report.state.spec.seed));
  report.coverage = coverage_of(indices_done(shards), sources);
  report.findings = tell_findings(context.ops, report.state, findings, known, today());
  const json::Value document = to_json(context.ops, report);
  ReportFile(in(out, "report.json")).write(json::dump(document, 2) + "\n");
  target.deliver(document, to_text(report));
  return exit_code(report);
}

}  // namespace

Verb merge() {
  return {"merge",
          "Make one report of a campaign's shards",
          "All shards must be there, each of them run to its end where the campaign has a number of cases. What comes of it is "
          "what "
          "one run of all would have told, but for who ran what (runs).",
          {"DIR", "a shard's folder", true, true},
          {{"--out", "DIR", "Where report.json and findings/ go", false},
           {"--partial", "", "Take shards that have not run all their cases, as where --time ended them", false},
           {"--known", "FILE", "A JSON list of findings that are known, each until a day", false},
           json_option(),
           ops_option()},
          run_merge};
}

}  // namespace dcpcheck::verbs
