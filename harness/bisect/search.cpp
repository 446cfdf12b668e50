#include "harness/bisect/search.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <utility>

#include "harness/bisect/worktree.hpp"
#include "harness/campaign/journal.hpp"
#include "harness/campaign/words.hpp"
#include "harness/core/digest.hpp"
#include "harness/core/error.hpp"
#include "harness/core/reader.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSchema = "dcpcheck.bisect-answers/1", kWorktrees = "worktrees";

std::string journal_of(const BisectOptions& options) { return (fs::path(options.folder) / "answers").string(); }

// What answers are answers to.
json::Value question_of(const BisectOptions& options) {
  json::Array cases;
  for (const BisectCase& one : options.step.cases) cases.emplace_back(one.id);
  std::error_code error;
  return json::Object{{"schema", std::string(kSchema)},
                      {"repository", fs::weakly_canonical(options.repository, error).string()},
                      {"good", options.good},
                      {"bad", options.bad},
                      {"kernel", options.step.kernel},
                      {"build", options.step.build},
                      {"laws", array_of(options.step.laws)},
                      {"golden", options.step.golden},
                      {"worker", to_json(options.step.worker)},
                      {"golden_digest", options.step.golden.empty() ? "" : sha256_hex(json::text_of(options.step.golden))},
                      {"build_limit", options.step.build_limit.count()},
                      {"case_limit", options.step.case_limit.count()},
                      {"start_limit", options.step.start_limit.count()},
                      {"keep_builds", options.keep_builds},
                      {"cases", std::move(cases)}};
}

class Search {
 public:
  Search(const BisectOptions& options, const std::function<void(const Revision&, std::int64_t left)>& told)
      : options_(options), told_(told), journal_(journal_of(options)) {
    recall();
    worktree_.emplace(options.repository, fs::path(options.folder) / kWorktrees / "search", options.bad,
                      options.step.interrupted);
  }

  BisectEnd run() {
    ask_ends();
    // git only says which commit is next: it would not check one out over what a build has left.
    worktree_->git({"bisect", "start", "--no-checkout", options_.bad, options_.good});
    while (candidates().empty()) {
      const std::string commit = worktree_->git({"rev-parse", "BISECT_HEAD"});
      const std::int64_t left =
          std::stoll(worktree_->git({"rev-list", "--count", "refs/bisect/bad", "--not", "--glob=refs/bisect/good-*"}));
      const Standing standing = answer(commit, left).result.standing;
      // Ends with 2 where only skipped ones are left, which the log tells, too.
      const ProgramEnd end = worktree_->try_git({"bisect", std::string(name_of(standing)), commit});
      if (end.code == 3)
        refuse("the ends have " + commit.substr(0, 12) +
               " in common, which is bad: it was mended on the way to the good end, and no commit between brought it in");
      if (candidates().empty() && worktree_->git({"rev-parse", "BISECT_HEAD"}) == commit)
        throw HarnessError("git bisect does not go on from " + commit + ": " + last_words(end.out + end.err));
    }
    end_.candidates = candidates();
    if (end_.candidates.size() == 1) {
      end_.first_bad = tested(end_.candidates.front());
      end_.last_good = nearest_good(end_.candidates.front());
    }
    return std::move(end_);
  }

 private:
  void recall() {
    const std::vector<json::Value> records = read_journal(journal_of(options_)).records;
    const std::string source = journal_of(options_);
    if (records.empty()) {
      journal_.append(question_of(options_));
      journal_.sync(true);
      return;
    }
    if (records.front() != question_of(options_))
      throw InputError(options_.folder +
                       " has the answers to another bisect: give a folder of its own with --out, or remove it");
    for (std::size_t i = 1; i < records.size(); ++i) {
      const Reader record(records[i], source);
      recalled_[record.at("commit").string()] = step_from_json(record.at("result").value(), source);
    }
  }

  const Revision& answer(const std::string& commit, std::int64_t left, Extent extent = Extent::first_failure) {
    Revision revision{commit, subject_of(options_.repository, commit, options_.step.interrupted), {}, false};
    if (const auto found = recalled_.find(commit); found != recalled_.end()) {
      revision.result = found->second;
      revision.recalled = true;
    } else {
      worktree_->clean(!options_.keep_builds);
      worktree_->git({"checkout", "--quiet", "--force", "--detach", commit});
      const std::string log = (fs::path(options_.folder) / ("build-" + commit.substr(0, 12) + ".log")).string();
      revision.result = step(options_.step, worktree_->path(), log, deciding_, extent);
      journal_.append(json::Object{{"commit", commit}, {"result", to_json(revision.result)}});
      journal_.sync(true);
    }
    end_.tested.push_back(std::move(revision));
    told_(end_.tested.back(), left);
    return end_.tested.back();
  }

  // Both ends have to be what they are said to be. Of many cases the first that tells them apart is the one that decides.
  void ask_ends() {
    const std::int64_t all = std::stoll(
        git(options_.repository, {"rev-list", "--count", options_.bad, "^" + options_.good}, options_.step.interrupted));
    if (all == 0) refuse("the bad end is not later than the good one: there is no commit between them");
    const Revision good = answer(options_.good, all, Extent::every_case);
    if (good.result.standing != Standing::good)
      refuse("the good end, " + named(good) + ", is " + std::string(name_of(good.result.standing)) + ": " + good.result.why +
             (good.result.at ? ", on " + case_name(*good.result.at) : ""));
    deciding_ = good.result.passed;
    const Revision bad = answer(options_.bad, all);
    if (bad.result.standing != Standing::bad)
      refuse("the bad end, " + named(bad) + ", is " + std::string(name_of(bad.result.standing)) + ": " + bad.result.why);
    if (!bad.result.at) return;
    end_.at = *bad.result.at;
    if (options_.step.golden.empty()) deciding_ = {end_.at};
  }

  // There is nothing to go on with.
  [[noreturn]] void refuse(const std::string& sentence) const {
    forget_answers(options_);
    throw InputError(sentence);
  }

  std::string case_name(std::size_t at) const { return options_.step.cases.at(at).name; }

  static std::string named(const Revision& revision) {
    return revision.commit.substr(0, 12) + " (" + text::printable(revision.subject) + ")";
  }

  // The commits that git's log names as the first bad one, or as possible ones.
  std::vector<std::string> candidates() const {
    std::vector<std::string> found;
    std::istringstream log(worktree_->git({"bisect", "log"}));
    for (std::string line; std::getline(log, line);) {
      if (!line.starts_with("# first bad commit: [") && !line.starts_with("# possible first bad commit: [")) continue;
      const std::size_t begin = line.find('[') + 1;
      found.push_back(line.substr(begin, line.find(']', begin) - begin));
    }
    return found;
  }

  std::optional<Revision> tested(const std::string& commit) const {
    for (const Revision& one : end_.tested)
      if (one.commit == commit) return one;
    return std::nullopt;
  }

  // Of the ancestors of `commit` that are good the one with the fewest commits between.
  std::optional<Revision> nearest_good(const std::string& commit) const {
    std::optional<Revision> nearest;
    std::int64_t fewest = 0;
    for (const Revision& one : end_.tested) {
      if (one.result.standing != Standing::good) continue;
      const std::string between =
          git(options_.repository, {"rev-list", "--count", commit, "^" + one.commit}, options_.step.interrupted);
      const std::string beyond =
          git(options_.repository, {"rev-list", "--count", one.commit, "^" + commit}, options_.step.interrupted);
      if (beyond != "0") continue;  // no ancestor
      if (const std::int64_t count = std::stoll(between); !nearest || count < fewest) {
        nearest = one;
        fewest = count;
      }
    }
    return nearest;
  }

  const BisectOptions& options_;
  const std::function<void(const Revision&, std::int64_t left)>& told_;
  Journal journal_;
  std::map<std::string, StepResult> recalled_;
  std::vector<std::size_t> deciding_;
  BisectEnd end_;
  std::optional<Worktree> worktree_;
};

}  // namespace

BisectLock::BisectLock(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw InputError("--out " + text::printable(folder) + " cannot be made: " + error.message());
  file_ = Descriptor(::open((fs::path(folder) / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (file_.get() < 0) throw InputError("--out " + text::printable(folder) + " cannot be written to");
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0)
    throw InputError(text::printable(folder) + " is in use by another bisect: give this one a folder of its own with --out");
}

BisectEnd find_first_bad(const BisectOptions& options, const std::function<void(const Revision&, std::int64_t left)>& told) {
  return Search(options, told).run();
}

void forget_answers(const BisectOptions& options) {
  std::error_code error;
  fs::remove(journal_of(options), error);
  if (error) throw HarnessError("remove of " + journal_of(options) + ": " + error.message());
}

std::string with_revision(const BisectOptions& options, const std::string& commit, const std::string& name,
                          const std::function<void(const fs::path&)>& use) {
  const Worktree worktree(options.repository, fs::path(options.folder) / kWorktrees / name, commit, options.step.interrupted);
  const std::string log = (fs::path(options.folder) / ("build-" + name + ".log")).string();
  if (std::string why = build(options.step, worktree.path(), log); !why.empty()) return why;
  use(worktree.path());
  return "";
}

}  // namespace dcpcheck
