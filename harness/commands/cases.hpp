// The cases that a command line names, read and checked before any of them runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/commands/context.hpp"
#include "harness/core/case.hpp"
#include "harness/report/report.hpp"

namespace dcpcheck {

// A case that is ready to run.
struct NamedCase {
  std::string reference;          // what `dcpcheck run` takes for it …
  std::vector<std::string> sets;  // … by --from, with these --set
  CaseFile file;
  const Op* op = nullptr;
  std::string id;
};

struct CaseRules {
  std::optional<std::uint64_t> seed;   // in place of the case's own
  std::int64_t memory = 0;             // bytes that one may take
  std::vector<std::string> sets = {};  // --set: fields that are replaced (overrides.hpp)
};

// The cases of `operands`: files, folders (every *.json under them but *.golden.json, by path), and "repro:<name>". Throws
// InputError with a sentence for each that is missing, malformed, breaks a rule, or takes too much memory.
std::vector<NamedCase> load_cases(const Context& context, const std::vector<std::string>& operands, const CaseRules& rules);

// The same for the embedded corpus.
std::vector<NamedCase> load_embedded(const Context& context, const CaseRules& rules);

// What the case's file expects of `kernel`: under its fault's name or "<op>@<fault>", the fixed one under "fixed"; a pass
// where it says nothing.
Expectation expectation_of(const CaseFile& file, const Kernel& kernel);

// The faults that the file's `expect` names, in its order; "fixed" is none.
std::vector<std::string> expected_faults(const CaseFile& file);

}  // namespace dcpcheck
