// What was worked out of launches before: launches of a pipeline repeat from rank to rank and from kernel to kernel.
#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "harness/core/plan.hpp"
#include "harness/exec/launch.hpp"
#include "harness/oracle/admissible.hpp"

namespace dcpcheck {

// All that a reference's answer depends on, as a digest. Where ranks do not matter, what differs between them does not
// either.
std::string question_of(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options);

// May be used by several threads.
class ReferenceMemory {
 public:
  // Answers are kept while they take no more than `bytes` together, the oldest going first.
  explicit ReferenceMemory(std::int64_t bytes = std::int64_t{256} << 20) : budget_(bytes) {}

  // reference(plan, inputs, rank, options), now or as it was before; `question` is question_of the same.
  std::shared_ptr<const Expected> ask(const std::string& question, const Reference& reference, const Plan& plan,
                                      const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options);

  // What judging a launch found that was clean (RankLaunch::clean) and had no violation: the same question with the same
  // digests of what it wrote comes to the same. Nothing where there was none.
  std::optional<LaunchFindings> judged(const std::string& question, const std::map<std::string, std::string>& digests) const;
  void remember(const std::string& question, const LaunchFindings& findings);

 private:
  using Answer = std::shared_future<std::shared_ptr<const Expected>>;
  void keep(const std::string& question, const Answer& answer, std::int64_t bytes);

  mutable std::mutex guard_;
  std::map<std::string, Answer> asked_;  // those being worked out, and those that are kept
  std::map<std::string, std::int64_t> kept_;
  std::deque<std::string> order_;  // of kept_, the oldest first
  std::int64_t budget_, bytes_ = 0;
  std::string last_;  // the last answer that is too large to be kept: ranks follow one another
  std::map<std::string, LaunchFindings> judged_;
};

}  // namespace dcpcheck
