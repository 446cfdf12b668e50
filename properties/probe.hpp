// Finds out what a kernel follows and requires: runs a small fixed set of cases on it under each value of each contract option,
// and proposes the declaration that fits, with what speaks for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/verdict.hpp"
#include "harness/exec/declaration.hpp"
#include "harness/exec/workbench.hpp"

namespace dcpcheck {

// A case that did not pass, and what came of it.
struct ProbeFailure {
  Case value;
  Verdict verdict;
};

// How cases come out under one value of an option, all other options being as proposed. Only cases that meet what is required
// are counted.
struct ProbedValue {
  std::string value;
  std::int64_t passed = 0, failed = 0;
  // Of those that passed, in how many something else is asked than under the proposal's first value: another answer is right,
  // memory is laid out otherwise, or there is no such case. In none: these cases cannot tell the two apart.
  std::int64_t telling = 0;
  std::optional<ProbeFailure> first;  // that failed
};

struct ProbedOption {
  std::string name;
  std::vector<ProbedValue> values;  // as the op has them
  std::vector<std::string>
      followed;                    // proposed: the one that fits best, and those that its cases tell from it and that pass, too
  std::vector<std::string> alike;  // pass as well, but these cases cannot tell them from what is followed
};

// Something that a case must be like: those for which it does not hold fail, and a case that failed passes once it is changed
// to meet it, and in nothing else.
struct ProbedRequirement {
  Requirement requirement;
  std::int64_t broken_failed = 0, broken_passed = 0;  // cases for which it does not hold
  std::int64_t mended = 0;                            // of these that failed: how many pass once changed
  std::vector<std::string> alike;                     // other conditions that these cases cannot tell from it
  ProbeFailure first;                                 // that failed
};

struct Probe {
  std::int64_t cases = 0;     // drawn
  std::int64_t passed = 0;    // that meet what is required, under the options proposed
  std::int64_t skipped = 0;   // by the kernel itself
  std::int64_t left_out = 0;  // as they break what is required
  std::int64_t runs = 0;      // of a case under some options
  std::vector<ProbedOption> options;
  std::vector<ProbedRequirement> requirements;
  std::string preset;                     // the op's preset that says just this; empty: none does
  std::vector<ProbeFailure> unexplained;  // that fail under any option, and break nothing that could be required; at most 3
  std::int64_t unexplained_cases = 0;

  // Whether every case that meets what is proposed passes, and there are some.
  bool fits() const { return unexplained_cases == 0 && passed > 0; }
};

// Probes a kernel of an op that is no pipeline, on the bench's backend, which must be able to run it. What the kernel declares
// is not looked at. The same kernel comes to the same result. Throws HarnessError where the backend fails, Interrupted once a
// signal came.
Probe probe(const Workbench& bench, const Op& op, const Kernel& kernel);

// The proposal as a kernel would declare it: options that are followed as the default alone are left out, as is what the preset
// says.
Declaration proposal_of(const Probe& probe, const Op& op);

}  // namespace dcpcheck
