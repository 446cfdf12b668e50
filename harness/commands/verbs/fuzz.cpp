#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <map>
#include <random>
#include <sstream>
#include <utility>

#include "harness/campaign/campaign.hpp"
#include "harness/campaign/campaign_report.hpp"
#include "harness/campaign/shard_environment.hpp"
#include "harness/commands/cases.hpp"
#include "harness/commands/context.hpp"
#include "harness/commands/lanes.hpp"
#include "harness/commands/machine.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/signals.hpp"
#include "harness/commands/stored.hpp"
#include "harness/commands/verb.hpp"
#include "harness/core/error.hpp"
#include "harness/report/json_report.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck::verbs {
namespace {

constexpr std::int64_t kDefaultSeconds = 600;
constexpr std::int64_t kMostSeconds = 30LL * 86400;

std::uint64_t some_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

int parse_jobs(const Arguments& arguments, const RunSettings& settings) {
  const std::string given = arguments.text("--jobs");
  if (given.empty()) return settings.backend->name() == "cuda" ? std::min(settings.threads, 8) : settings.threads;
  return parse_count("--jobs", given);
}

// A campaign is the same whoever runs it where CI is set; else a seed is drawn, and told.
std::uint64_t seed_for(const RunSettings& settings) {
  if (settings.seed) return *settings.seed;
  const char* ci = std::getenv("CI");
  return ci != nullptr && *ci != '\0' ? 54907 : some_seed();
}

CampaignSpec spec_for(const Arguments& arguments, const RunSettings& settings) {
  CampaignSpec spec;
  spec.backend = settings.backend->name();
  spec.kernels = settings.kernels;
  spec.ops = arguments.all("--op");
  spec.op_folders = arguments.all("--ops");
  spec.laws = arguments.all("--law");
  spec.shares = parse_shares(arguments.all("--share"));
  spec.base = arguments.text("--from");
  spec.settings = arguments.all("--set");
  spec.corpora = arguments.all("--corpus");
  spec.memory = settings.memory_text;
  if (arguments.has("--cases")) spec.cases = parse_cases("--cases", arguments.text("--cases"));
  return spec;
}

// What a campaign that is gone on with was begun with, where the command line does not say otherwise.
void take_from_journal(CampaignSpec& spec, const Arguments& arguments, const RunSettings& settings, const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / "journal").string();
  std::error_code error;
  if (!std::filesystem::exists(path, error)) throw InputError("--resume: there is no campaign in " + text::printable(folder));
  const JournalContents before = read_journal(path);
  if (before.records.empty())
    throw InputError("--resume: the campaign in " + text::printable(folder) +
                     " ended before it began: begin it in another folder");
  const CampaignSpec begun = state_of({before.records.front()}, path).spec;
  const CampaignSpec said = spec;
  spec = begun;
  if (settings.seed) spec.seed = *settings.seed;
  if (arguments.has("--backend")) spec.backend = said.backend;
  if (arguments.has("--kernel")) spec.kernels = said.kernels;
  if (arguments.has("--op")) spec.ops = said.ops;
  if (arguments.has("--ops")) spec.op_folders = said.op_folders;
  if (arguments.has("--law")) spec.laws = said.laws;
  if (arguments.has("--share")) spec.shares = said.shares;
  if (arguments.has("--from")) spec.base = said.base;
  if (arguments.has("--set")) spec.settings = said.settings;
  if (arguments.has("--corpus")) spec.corpora = said.corpora;
  if (arguments.has("--memory")) spec.memory = said.memory;
  if (arguments.has("--cases")) spec.cases = said.cases;
  if (arguments.has("--shard")) spec.shard = said.shard;
}

std::string where_time_went(const std::map<std::string, double>& spent) {
  double all = 0;
  for (const auto& entry : spent) all += entry.second;
  if (all <= 0) return "";
  std::string line = "Workers' time:";
  for (const auto& [what, seconds] : spent) {
    const auto percent = static_cast<std::int64_t>(100 * seconds / all + 0.5);
    line += " " + what + " " + std::to_string(percent) + " %,";
  }
  line.pop_back();
  return text::wrap(line, 80, 2);
}

int run_fuzz(const Arguments& arguments, Context& context) {
  const JsonTarget target(arguments, context);
  RunSettings settings = run_settings(arguments);
  CampaignOptions options;
  options.spec = spec_for(arguments, settings);
  std::string by;
  options.spec.shard = shard_for(arguments.text("--shard"), shard_of_environment(std::getenv), by);
  const Shard shard = options.spec.shard;
  options.folder = arguments.text("--out", "dcpcheck-campaign");
  if (!by.empty() && by != "--shard" && shard.count > 1)  // one command line for all: each has a folder of its own
    options.folder = (std::filesystem::path(options.folder) /
                      ("shard-" + std::to_string(shard.index) + "-of-" + std::to_string(shard.count)))
                         .string();
  options.resume = arguments.has("--resume");
  if (options.resume) {
    take_from_journal(options.spec, arguments, settings, options.folder);
  } else {
    options.spec.seed = seed_for(settings);
  }
  if (arguments.has("--time") || options.spec.cases == 0)
    options.time = parse_time("--time", arguments.text("--time", std::to_string(kDefaultSeconds) + "s"), kMostSeconds);
  options.jobs = parse_jobs(arguments, settings);
  options.stored = stored_cases(context, options.spec.corpora, settings.memory, options.spec.corpus_digest);
  const std::vector<Known> known = arguments.has("--known") ? load_known(arguments.text("--known")) : std::vector<Known>{};
  options.base = base_case(context, settings.memory, options.spec.base, options.spec.settings);
  // A case of one op is drawn on the kernels of that op alone.
  if (options.base) {
    if (options.spec.ops.empty()) options.spec.ops = {options.base->op};
    if (options.spec.ops != std::vector<std::string>{options.base->op})
      throw InputError("--op: the case of --from is one of " + options.base->op);
  }
  options.worker = worker_command(options.spec, arguments.has("--no-self-test"));
  options.replay = replay_words(context, options.spec);
  options.case_limit = parse_time("--case-limit", arguments.text("--case-limit", "60s"), kMostSeconds);
  options.start_limit = parse_time("--start-limit", arguments.text("--start-limit", "600s"), kMostSeconds);
  options.shrink_evaluations =
      static_cast<std::int64_t>(parse_cases("--shrink-evals", arguments.text("--shrink-evals", "400")));
  options.shrink_time = parse_time("--shrink-time", arguments.text("--shrink-time", "300s"), kMostSeconds);
  options.memory = settings.memory;
  options.tool = context.tool.version + " (" + context.tool.revision + ")";
  options.ops = &context.ops;
  options.interrupted = context.interrupted;
  options.progress = context.err;
  options.terminal = context.progress;
  *context.err << "dcpcheck: seed " << seed_text(options.spec.seed) << ", " << text::count(options.jobs, "worker") << ", into "
               << text::printable(options.folder);
  if (shard.count > 1) *context.err << ", shard " << shard.index << " of " << shard.count << " (" << by << ")";
  *context.err << "\n" << std::flush;

  CampaignEnd end = run_campaign(options);
  if (!end.torn.empty()) *context.err << "dcpcheck: " << end.torn << "\n";
  CampaignReport report;
  report.state = std::move(end.state);
  report.coverage = std::move(end.coverage);
  report.findings =
      tell_findings(context.ops, report.state, (std::filesystem::path(options.folder) / "findings").string(), known, today());
  report.runs = json::Array{run_to_json(context, settings, shard, end)};
  const json::Value document = to_json(context.ops, report);
  ReportFile((std::filesystem::path(options.folder) / "report.json").string()).write(json::dump(document, 2) + "\n");
  std::string text = to_text(report);
  if (end.seconds > 0) {
    std::ostringstream speed;
    speed << std::fixed << std::setprecision(1) << static_cast<double>(end.ran) / end.seconds << " cases/s over " << end.seconds
          << " s of this run; " << text::printable(options.folder) << "/report.json\n";
    if (!report.findings.empty())
      speed << "findings are in " << text::printable(options.folder)
            << "/findings, a case file each: run, shrink and corpus add take them\n";
    text += speed.str() + where_time_went(end.spent);
  }
  target.deliver(document, text);
  if (end.signal != 0) {
    *context.err << "dcpcheck: stopped by " << (end.signal == SIGINT ? "SIGINT" : "SIGTERM")
                 << ": what was done is kept, and --resume goes on with it\n"
                 << std::flush;
    flush_or_throw(*context.out, "stdout");
    die_by(end.signal);
  }
  return exit_code(report);
}

}  // namespace

Verb fuzz() {
  Verb verb{
      "fuzz",
      "Run a campaign: generated cases in processes of their own, for a night",
      "Stored cases come first (--corpus), then generated ones, each judged element by element and held to one law of its op. "
      "A kernel that crashes or hangs takes the process that runs it, and nothing else. What does not pass is run again, "
      "made small, and kept in DIR/findings, a case file each; DIR/journal has what was done, so that --resume goes on after "
      "any end. Case i of a seed depends on the seed, the op and i alone.",
      {},
      {},
      run_fuzz};
  verb.options = {
      {"--time", "TIME", "Begin no case after that time, as 30m or 2h; default 10m where there is no --cases", false},
      {"--cases", "N", "Generated cases, over all shards", false},
      {"--jobs", "J", "Worker processes; default: as many as there are threads", false},
      {"--out", "DIR", "The campaign's folder; default dcpcheck-campaign", false},
      {"--resume", "", "Go on with the campaign in the folder", false},
      {"--corpus", "DIR", "Run the cases of this folder first: DIR/regressions, then DIR/findings, then the rest", true},
      {"--from", "CASE", "Run this case over and over, each time with a seed of its own, in place of generated ones", false},
      set_option(),
      {"--shard", "I/N", "Run part I (from 0) of N; /N takes I from Slurm, MPI or Kubernetes", false},
      {"--known", "FILE", "A JSON list of findings that are known, each until a day", false},
      {"--shrink-evals", "N", "Cases that making a finding small may take (default 400)", false},
      {"--shrink-time", "TIME", "… and time at the most (default 5m)", false},
      {"--case-limit", "TIME", "A case that takes longer hangs (default 60s)", false},
      {"--start-limit", "TIME", "… and the first one of a kernel in a process, which may compile (default 10m)", false},
      {"--config", "FILE", "Options from a TOML file, as time = \"30m\"; the command line goes before it", false},
      json_option(),
      threads_option()};
  for (OptionSpec& option : campaign_options()) verb.options.push_back(std::move(option));
  return verb;
}

}  // namespace dcpcheck::verbs
