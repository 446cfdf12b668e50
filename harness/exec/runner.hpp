// Runs a case on a kernel: every rank, both poisons, judged, with digests.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/tokens.hpp"
#include "harness/core/verdict.hpp"
#include "harness/exec/backend.hpp"
#include "harness/exec/kernel.hpp"
#include "harness/oracle/admissible.hpp"

namespace dcpcheck {

// Everything about a case that no kernel changes: worked out once, used for each kernel.
struct Prepared {
  Plan plan;
  Inputs inputs;
  std::string inputs_digest;
  Reference reference;
  // Per summation order (ReferenceOptions::lanes): what is admissible, by rank; one entry where ranks do not matter.
  std::map<int, std::vector<Expected>> expected;
};

// `op` must outlive the result. Throws InputError as make_plan does.
Prepared prepare(const Op& op, const Reference& reference, const Case& value, std::int64_t memory_budget, int threads,
                 const std::string& source = "case");

struct RunOptions {
  int threads = 1;
  bool portable = false;                          // CaseResult::portable is wanted
  std::vector<std::string> consumed;              // outputs by row whose bytes are wanted in CaseResult::consumed
  const std::atomic<int>* interrupted = nullptr;  // a signal's number once one came: run_case throws Interrupted
};

struct CaseResult {
  Verdict verdict;
  std::string inputs_digest, all_digest;
  std::map<std::string, std::string> outputs;  // "rank<r>/<buffer>" -> digest, of run A
  // The same for portable digests (exec/portable.hpp). Of a pipeline only "tokens": what its launches are given is what others
  // left, so that of two right kernels each later launch may be given something else. Its tokens are the same for all of them
  // as long as each step's margin is known and over its bound; where one is not, there is nothing.
  std::map<std::string, std::string> portable;
  // "rank<r>/<buffer>" -> SHA-256 of run A's bytes of the live rows, whatever they hold (poison too): what a consumer
  // of the output would read. For the buffers that RunOptions::consumed names.
  std::map<std::string, std::string> consumed;
  std::optional<Tokens> tokens;  // of generate
  double seconds = 0;
};

// Throws Interrupted once a signal came.
void check_interrupted(const RunOptions& options);

// Gives a verdict that has no status yet the one that its violations and counts come to.
void conclude(Verdict& verdict);

// What is admissible on `rank`, for a kernel that sums in `lanes` (ReferenceOptions); worked out once.
const Expected& expected_on(Prepared& prepared, std::int64_t rank, int lanes, int threads);

// Runs and judges. Never throws for what the kernel does; throws HarnessError where the backend itself fails.
CaseResult run_case(Prepared& prepared, const Kernel& kernel, Backend& backend, const RunOptions& options);

}  // namespace dcpcheck
