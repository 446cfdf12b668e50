// A law: a relation that holds between what a right kernel leaves in several launches, or within one. Each lies in a file of
// its own under laws/; the build makes the list. Which laws an op obeys, its op.json says.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/exec/workbench.hpp"
#include "properties/observe.hpp"

namespace dcpcheck {

// A case on a kernel, as laws look at it: what several of them ask is worked out once.
class Trial {
 public:
  // All must outlive it. Throws InputError as prepare does.
  Trial(const Workbench& bench, const Op& op, const Kernel& kernel, const Case& value);

  const Workbench& bench() const { return bench_; }
  const Op& op() const { return op_; }
  const Kernel& kernel() const { return kernel_; }
  const Case& value() const { return prepared_.plan.value; }
  const Plan& plan() const { return prepared_.plan; }
  const Setting& setting();                           // the case's own launch
  const CaseResult& judged();                         // judged element by element, on both poisons
  const Observation& observed();                      // what the case's own launch leaves
  Observation observe(const Setting& setting) const;  // what the kernel leaves in another
  CaseResult judge_other(const Case& value) const;    // another case of the op, judged

 private:
  CaseResult judge_prepared(Prepared& prepared) const;

  const Workbench& bench_;
  const Op& op_;
  const Kernel& kernel_;
  Prepared prepared_;
  mutable ReferenceMemory memory_;
  std::optional<Setting> setting_;
  std::optional<CaseResult> judged_;
  std::optional<Observation> observed_;
};

struct LawFindings {
  std::string silent;  // why the law says nothing of this case; empty: it does
  std::vector<Violation> violations;
  std::string detail;         // one sentence where there are no coordinates
  std::int64_t compared = 0;  // elements that were judged, or rows that were compared
};

struct Law {
  std::string name;
  std::string doc;           // one line
  bool of_every_op = false;  // else of those whose op.json names it
  // Throws HarnessError where the backend fails. What the kernel does is never an exception.
  std::function<LawFindings(Trial&)> check;
};

// All laws, by name.
const std::vector<Law>& all_laws();

// The law of that name; nullptr where there is none.
const Law* find_law(const std::string& name);

// Whether the op has said that right kernels of it obey the law.
bool obeys(const Op& op, const Law& law);

// Throws InputError where op.json names a law that there is not.
void check_laws_of(const Op& op);

// Whether `law` speaks of the case on the kernel, and what it found. A law that cannot be asked, as its other launches would
// break a rule of the op, is silent and says why.
LawFindings apply(const Law& law, Trial& trial);

// What of `findings` is a verdict on the case: skipped where the law is silent.
Verdict verdict_of(const Law& law, LawFindings findings);

}  // namespace dcpcheck
