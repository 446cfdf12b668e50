#include <filesystem>
#include <utility>

#include "harness/bisect/program.hpp"
#include "harness/bisect/worktree.hpp"
#include "harness/campaign/words.hpp"
#include "harness/commands/bisect.hpp"
#include "harness/core/digest.hpp"
#include "harness/core/error.hpp"
#include "harness/report/output.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck::verbs {
namespace {

namespace fs = std::filesystem;

// The folder that the same question finds its answers in again, where --out names none.
std::string folder_for(const Arguments& arguments, const BisectOptions& options) {
  if (arguments.has("--out")) return fs::absolute(arguments.text("--out")).string();
  Sha256 sum;
  sum.add(options.repository + "\n" + options.good + "\n" + options.bad + "\n");
  for (const auto& [option, values] : arguments.options) {
    if (option == "--json" || option == "--repo" || option == "--good" || option == "--bad") continue;
    sum.add(option + "\n");
    for (const std::string& value : values) sum.add(value + "\n");
  }
  return (fs::temp_directory_path() / ("dcpcheck-bisect-" + sum.hex().substr(0, 16))).string();
}

// Where an element first differs between the two revisions, both of which are there at once.
void compare_ends(const BisectOptions& options, BisectReport& report) {
  const BisectEnd& end = report.end;
  if (!end.first_bad || !end.last_good || end.at >= report.cases.size()) return;
  if (const std::string& why = end.first_bad->result.why; why.starts_with("crash") || why.starts_with("hang")) {
    report.why_not = "the first bad one: " + why;
    return;
  }
  const BisectCase& at = report.cases[end.at];
  const std::string file = (fs::path(options.folder) / "case.json").string();
  ReportFile(file).write(
      json::dump(
          json::Object{
              {"schema", "dcpcheck.case/1"}, {"name", at.name}, {"source", "what bisect decided by"}, {"case", at.value}},
          1) +
      "\n");
  const auto compare = [&](const fs::path& good, const fs::path& bad) {
    const std::vector<std::string> words =
        program_words(options.step, {"compare", file, "--json", "-", "--kernel", kernel_in(options.step.kernel, good),
                                     "--kernel", kernel_in(options.step.kernel, bad)});
    ProgramOptions how;
    how.limit = options.step.start_limit + 4 * options.step.case_limit;
    how.interrupted = options.step.interrupted;
    const ProgramEnd ended = run_program(words, how);
    if (ended.code == 0 || ended.code == 1) {
      report.compared = json::parse(ended.out, "compare's answer", {std::size_t{64} << 20, 32});
    } else {
      const std::string last = last_words(ended.err);
      report.why_not = how_it_ended(ended, how.limit) + (last.empty() ? "" : ": " + last);
    }
  };
  std::string inner;
  const std::string outer = with_revision(options, end.last_good->commit, "last-good", [&](const fs::path& good) {
    inner = with_revision(options, end.first_bad->commit, "first-bad", [&](const fs::path& bad) { compare(good, bad); });
  });
  if (report.why_not.empty()) report.why_not = outer.empty() ? inner : outer;
}

std::string replay_for(const Context& context, const BisectOptions& options, const BisectReport& report) {
  if (!report.end.first_bad || report.end.at >= report.cases.size()) return "";
  std::string line = "git checkout " + report.end.first_bad->commit.substr(0, 12);
  if (!options.step.build.empty()) line += " && (" + in_worktree(options.step.build, ".", false) + ")";
  line += " && " + context.program + " run --kernel " + text::shell_quote(in_worktree(options.step.kernel, ".", false));
  for (const std::string& law : options.step.laws)
    if (!law.empty()) line += " --law " + law;
  const std::string& file = report.cases[report.end.at].file;
  return line + " " + text::shell_quote(file.empty() ? (fs::path(options.folder) / "case.json").string() : file);
}

// Of a folder that was not asked for nothing is left but what a replay line names.
struct Tidying {
  std::string folder;  // "": it was asked for
  ~Tidying() {
    if (folder.empty()) return;
    std::error_code error;
    const fs::path at(folder);
    if (fs::exists(at / "answers", error)) return;  // the same command goes on with them
    for (const auto& entry : fs::directory_iterator(at, error))
      if (const std::string name = entry.path().filename().string(); name == "lock" || name.ends_with(".log"))
        fs::remove(entry.path(), error);
    fs::remove(at, error);  // unless something is left in it
  }
};

int run_bisect(const Arguments& arguments, Context& context) {
  const JsonTarget target(arguments, context);
  const RunSettings settings = run_settings(arguments);
  BisectOptions options;
  options.step = step_options(arguments, context, settings);
  if (!arguments.has("--good") || !arguments.has("--bad")) throw InputError("bisect needs --good REV and --bad REV");
  options.repository = fs::absolute(arguments.text("--repo", ".")).string();
  options.good = commit_of(options.repository, arguments.text("--good"), context.interrupted);
  options.bad = commit_of(options.repository, arguments.text("--bad"), context.interrupted);
  options.keep_builds = arguments.has("--keep-builds");
  options.folder = folder_for(arguments, options);
  const BisectLock lock(options.folder);
  const Tidying tidying{arguments.has("--out") ? "" : options.folder};
  options.step.cases = bisect_cases(arguments, context, settings, [&] {
    std::optional<Lane> lane;
    std::string unloaded;
    const std::string unbuilt = with_revision(options, options.good, "search",
                                              [&](const fs::path& folder) { lane = lane_in(options.step, folder, unloaded); });
    if (!lane) throw InputError("the good end is skip: " + (unbuilt.empty() ? unloaded : unbuilt));
    return *lane;
  });
  check_harness(options.step);
  options.step.self_test = false;  // it has been done
  *context.err << "dcpcheck: answers and the builds' logs are kept in " << text::printable(options.folder)
               << ", and the same command goes on with them\n"
               << std::flush;
  BisectReport report;
  report.cases = options.step.cases;
  report.end = find_first_bad(options, [&](const Revision& one, std::int64_t left) {
    *context.err << "dcpcheck: " << one.commit.substr(0, 12) << " " << name_of(one.result.standing)
                 << (one.recalled ? ", as answered before" : "") << ": " << text::printable(one.result.why) << " ("
                 << text::count(left, "revision") << " left)\n"
                 << std::flush;
  });
  compare_ends(options, report);
  report.replay = replay_for(context, options, report);
  target.deliver(to_json(report), render(report));
  flush_or_throw(target.console(), "stdout");
  forget_answers(options);
  return report.end.candidates.size() == 1 ? 0 : 1;
}

}  // namespace

Verb bisect() {
  Verb verb{
      "bisect",
      "Find the commit at which a kernel in a git repository began to fail",
      "Checks revisions out in a worktree of its own (your checkout, index and stash stay as they are), builds them, and "
      "holds their kernel to a case, a golden file, a law or generated cases. What does not build, has no such kernel, or is "
      "not for the case, is skipped; where dcpcheck itself fails the search ends. A search that was stopped goes on when the "
      "same command is given again. Exits 0 with the first bad commit, 1 where skipped ones hide it.",
      {},
      {{"--repo", "DIR", "The repository (default: the one here)", false},
       {"--good", "REV", "A revision at which the kernel was right", false},
       {"--bad", "REV", "A later one at which it is wrong", false}},
      run_bisect};
  for (OptionSpec& option : bisect_options()) verb.options.push_back(std::move(option));
  verb.options.push_back(
      {"--keep-builds", "", "Build on what earlier builds left: faster, where a stale file cannot answer", false});
  verb.options.push_back(
      {"--out", "DIR", "Where answers, logs and the worktree are (default: a folder for temporary files)", false});
  verb.options.push_back(json_option());
  return verb;
}

}  // namespace dcpcheck::verbs
