#include "harness/bisect/worktree.hpp"

#include <system_error>
#include <utility>

#include "harness/core/error.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

namespace fs = std::filesystem;

ProgramEnd run_git(const std::string& folder, const std::vector<std::string>& arguments, const std::atomic<int>* interrupted) {
  // Hooks are for the people who work in the repository; its own maintenance may wait.
  std::vector<std::string> words{
      "git", "-C", folder, "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "advice.detachedHead=false"};
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
  if (!run_git(folder, {"rev-parse", "--git-dir"}, interrupted).ok())
    throw InputError(text::printable(folder) + " is no git repository");
  throw InputError("'" + text::printable(revision) + "' is no commit of " + text::printable(folder));
}

std::string subject_of(const std::string& folder, const std::string& commit, const std::atomic<int>* interrupted) {
  return git(folder, {"log", "-1", "--format=%s", commit}, interrupted);
}

Worktree::Worktree(std::string repository, fs::path path, const std::string& commit, const std::atomic<int>* interrupted)
    : repository_(std::move(repository)), path_(std::move(path)), interrupted_(interrupted) {
  remove();
  try {
    dcpcheck::git(repository_, {"worktree", "add", "--quiet", "--detach", path_.string(), commit}, interrupted_);
  } catch (...) {
    remove();
    throw;
  }
}

Worktree::~Worktree() {
  try {
    remove();
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

std::string Worktree::git(const std::vector<std::string>& arguments) const {
  return dcpcheck::git(path_.string(), arguments, interrupted_);
}

void Worktree::clean(bool all) const {
  git({"reset", "--quiet", "--hard"});
  if (all) git({"clean", "-ffdxq"});
}

}  // namespace dcpcheck
