// A checkout of a repository beside the user's own, whose files, index, branches and stash stay as they are.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/bisect/program.hpp"

namespace dcpcheck {

// What git says on stdout, without the last newline. Throws HarnessError, with git's last words, where it fails.
std::string git(const std::string& folder, const std::vector<std::string>& arguments, const std::atomic<int>* interrupted);

// The commit that `revision` names in the repository that `folder` lies in, as 40 or 64 hex digits. Throws InputError where it
// names none.
std::string commit_of(const std::string& folder, const std::string& revision, const std::atomic<int>* interrupted);

// The first line of a commit's message.
std::string subject_of(const std::string& folder, const std::string& commit, const std::atomic<int>* interrupted);

class Worktree {
 public:
  // A worktree of the repository that `repository` lies in, at `path`, with no branch. What an earlier process left there, as
  // one that was killed does, is taken away first: the folder that `path` is in is marked as one of these, and is no other's.
  // Throws InputError where that folder is there and is not marked, HarnessError where git fails.
  Worktree(std::string repository, std::filesystem::path path, const std::string& commit, const std::atomic<int>* interrupted);
  // Takes it away again.
  ~Worktree();
  Worktree(const Worktree&) = delete;
  Worktree& operator=(const Worktree&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // git, in the worktree; likewise. None of the user's hooks run.
  std::string git(const std::vector<std::string>& arguments) const;
  // The same, however it ends.
  ProgramEnd try_git(const std::vector<std::string>& arguments) const;
  // Takes back what was changed in files of the commit; with `all`, what lies beside them, ignored or not, too.
  void clean(bool all) const;

 private:
  void remove();
  void leave();

  std::string repository_;
  std::filesystem::path path_;
  std::string git_folder_;  // the repository's own for this worktree: what is run in it may take its .git away
  const std::atomic<int>* interrupted_;
};

}  // namespace dcpcheck
