// The first revision of a repository at which a kernel fails, by `git bisect` in a worktree of its own.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/adapters/child.hpp"
#include "harness/bisect/step.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {

struct BisectOptions {
  StepOptions step;
  std::string repository, good, bad;  // good and bad: commits, whole
  std::string folder;                 // the worktree, logs and the answers so far are kept in it
  bool keep_builds = false;           // what builds leave is there for the next one, too
};

// The folder is this process's as long as there is one of these, from before the first worktree until after the last.
class BisectLock {
 public:
  // Makes the folder where there is none. Throws InputError where it cannot be made, or another process has it.
  explicit BisectLock(const std::string& folder);

 private:
  Descriptor file_;
};

struct Revision {
  std::string commit, subject;
  StepResult result;
  bool recalled = false;  // answered by an earlier run that was interrupted
};

struct BisectEnd {
  std::vector<Revision> tested;  // in the order they were: the good end, the bad end, then as git asked for them
  std::vector<std::string>
      candidates;  // commits that may be the first bad one: one where that is known, more where skips hide it
  std::optional<Revision> first_bad, last_good;  // where there is one candidate; last_good is the nearest that was tested
  std::size_t at = 0;                            // the case that decided
};

// `told` hears each revision once it is answered, and how many may still come. Answers are kept in the folder until
// forget_answers(), so that a search that was stopped goes on from there. Throws InputError where an end is not what it is said
// to be, or the folder has answers to another question; HarnessError where dcpcheck or git fails; Interrupted. The worktree is
// gone whichever way it ends.
BisectEnd find_first_bad(const BisectOptions& options, const std::function<void(const Revision&, std::int64_t left)>& told);

void forget_answers(const BisectOptions& options);

// Checks `commit` out in a worktree called `name`, builds it there, and has `use` do something with its folder while it is
// there. Returns why it does not build, a phrase; "" where it does.
std::string with_revision(const BisectOptions& options, const std::string& commit, const std::string& name,
                          const std::function<void(const std::filesystem::path&)>& use);

}  // namespace dcpcheck
