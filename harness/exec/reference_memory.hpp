// Answers of references, kept by what they were asked: launches of a pipeline repeat from rank to rank and kernel to kernel.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "harness/core/plan.hpp"
#include "harness/oracle/admissible.hpp"

namespace dcpcheck {

class ReferenceMemory {
 public:
  // Answers are kept while they take no more than `bytes` together, the oldest going first.
  explicit ReferenceMemory(std::int64_t bytes = std::int64_t{256} << 20) : budget_(bytes) {}

  // reference(plan, inputs, rank, options), now or as it was before.
  std::shared_ptr<const Expected> ask(const Reference& reference, const Plan& plan, const Inputs& inputs, std::int64_t rank,
                                      const ReferenceOptions& options);

 private:
  struct Kept {
    std::shared_ptr<const Expected> answer;
    std::int64_t bytes = 0;
  };
  std::map<std::string, Kept> kept_;
  std::deque<std::string> order_;  // of kept_, the oldest first
  std::int64_t budget_, bytes_ = 0;
  // The last answer, however large: ranks follow one another.
  std::string last_;
  std::shared_ptr<const Expected> last_answer_;
};

}  // namespace dcpcheck
