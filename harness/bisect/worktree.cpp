#include "harness/bisect/worktree.hpp"

#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "harness/core/error.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

namespace fs = std::filesystem;

const std::string kMark = "made-by-dcpcheck";

// `pinned`: options of git itself, before its verb.
ProgramEnd run_git(const std::string& folder, const std::vector<std::string>& arguments, const std::atomic<int>* interrupted,
                   const std::vector<std::string>& pinned = {}) {
  // Hooks are for the people who work in the repository; its own maintenance may wait.
  std::vector<std::string> words{"git", "-C", folder};
  for (const char* setting : {"core.hooksPath=/dev/null", "gc.auto=0", "advice.detachedHead=false", "submodule.recurse=false"})
    words.insert(words.end(), {"-c", setting});
  words.insert(words.end(), pinned.begin(), pinned.end());
  words.insert(words.end(), arguments.begin(), arguments.end());
  ProgramOptions options;
  options.interrupted = interrupted;
  ProgramEnd end = run_program(words, options);
  if (end.code == 127) throw InputError("git is needed, and is not on PATH");
  while (end.out.ends_with('\n')) end.out.pop_back();
  return end;
}

}  // namespace

std::string git(const std::string& folder, const std::vector<std::string>& arguments, const std::atomic<int>* interrupted) {
  const ProgramEnd end = run_git(folder, arguments, interrupted);
  if (end.ok()) return end.out;
  throw HarnessError("git " + arguments.front() + " in " + text::printable(folder) + " ended with " + how_it_ended(end, {}) +
                     ": " + text::printable(last_words(end.err.empty() ? end.out : end.err)));
}

std::string commit_of(const std::string& folder, const std::string& revision, const std::atomic<int>* interrupted) {
  const ProgramEnd end =
      run_git(folder, {"rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"}, interrupted);
  if (end.ok()) return end.out;
  if (const ProgramEnd here = run_git(folder, {"rev-parse", "--git-dir"}, interrupted); !here.ok())
    throw InputError(text::printable(folder) + " is no git repository: " + text::printable(last_words(here.err)));
  throw InputError("'" + text::printable(revision) + "' is no commit of " + text::printable(folder));
}

std::string subject_of(const std::string& folder, const std::string& commit, const std::atomic<int>* interrupted) {
  return git(folder, {"log", "-1", "--format=%s", commit}, interrupted);
}

Worktree::Worktree(std::string repository, fs::path path, const std::string& commit, const std::atomic<int>* interrupted)
    : repository_(std::move(repository)), path_(std::move(path)), interrupted_(interrupted) {
  const fs::path folder = path_.parent_path();
  std::error_code error;
  if (fs::create_directory(folder, error)) {
    if (!std::ofstream(folder / kMark)) throw HarnessError(text::printable(folder.string()) + " cannot be written to");
  } else if (!fs::exists(folder / kMark, error)) {
    throw InputError(text::printable(folder.string()) +
                     " is there, and was not made by dcpcheck, which has its worktrees in a folder of that name");
  }
  remove();
  try {
    dcpcheck::git(repository_, {"worktree", "add", "--quiet", "--detach", path_.string(), commit}, interrupted_);
    git_folder_ = dcpcheck::git(path_.string(), {"rev-parse", "--absolute-git-dir"}, interrupted_);
  } catch (...) {
    leave();
    throw;
  }
}

Worktree::~Worktree() { leave(); }

void Worktree::leave() {
  try {
    remove();
    // The last one takes the folder with it.
    const fs::path folder = path_.parent_path();
    std::error_code error;
    if (std::distance(fs::directory_iterator(folder, error), fs::directory_iterator()) != 1) return;
    fs::remove(folder / kMark, error);
    fs::remove(folder, error);
  } catch (const std::exception&) {
    // A repository that has gone: there is nothing more to be done for it.
  }
}

void Worktree::remove() {
  // Twice --force: it may be locked, too. None of it may be stopped by a signal, or it would be left behind. Not by `git
  // worktree prune`, which would also forget worktrees of the user's that are out of reach for now.
  const std::vector<std::string> words{"worktree", "remove", "--force", "--force", path_.string()};
  if (run_git(repository_, words, nullptr).ok()) return;
  std::error_code error;
  if (fs::remove_all(path_, error) > 0) static_cast<void>(run_git(repository_, words, nullptr));
}

ProgramEnd Worktree::try_git(const std::vector<std::string>& arguments) const {
  return run_git(path_.string(), arguments, interrupted_, {"--git-dir=" + git_folder_, "--work-tree=" + path_.string()});
}

std::string Worktree::git(const std::vector<std::string>& arguments) const {
  const ProgramEnd end = try_git(arguments);
  if (end.ok()) return end.out;
  throw HarnessError("git " + arguments.front() + " in " + text::printable(path_.string()) + " ended with " +
                     how_it_ended(end, {}) + ": " + text::printable(last_words(end.err.empty() ? end.out : end.err)));
}

void Worktree::clean(bool all) const {
  git({"reset", "--quiet", "--hard"});
  if (all) git({"clean", "-ffdxq"});
}

}  // namespace dcpcheck
