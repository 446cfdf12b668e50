// Runs cases on kernels and makes the report of it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/commands/cases.hpp"
#include "harness/commands/context.hpp"
#include "harness/commands/options.hpp"
#include "harness/report/report.hpp"
#include "properties/law.hpp"

namespace dcpcheck {

// A case and the kernels it is run on, each with what should come of it.
struct Job {
  const NamedCase* named = nullptr;
  struct Run {
    const Kernel* kernel = nullptr;
    Expectation expected;
    const Law* law = nullptr;  // judged by this alone; nullptr: element by element
  };
  std::vector<Run> runs;
  // Where there are no runs: why, and the kernel that was asked for.
  std::string skipped, skipped_kernel;
};

// What `repro` compares between runs: "rank<r>/<buffer>" -> digest of what a consumer would read.
struct Consumed {
  const Job* job = nullptr;
  const Kernel* kernel = nullptr;
  std::map<std::string, std::string> digests;
};

struct SuiteResult {
  Report report;
  std::vector<Consumed> consumed;
};

// Called before each run with its replay line.
using BeforeRun = std::function<void(const NamedCase&, const Kernel&, const std::string& replay)>;

// Runs `jobs` in order; a job's inputs and reference are worked out once. SuiteResult::consumed is of the buffers that
// `consumed` names. Throws HarnessError where the backend does not
// compute the bits that it should (Context::self_test) or fails, and Interrupted.
SuiteResult run_suite(Context& context, const RunSettings& settings, const std::vector<Job>& jobs,
                      const std::vector<std::string>& consumed, const BeforeRun& before);

// What the context has to judge cases with, each on `threads` threads.
Workbench bench_of(const Context& context, const RunSettings& settings, int threads);

// An empty report that says who made it, where and how.
Report new_report(const Context& context, const RunSettings& settings);

}  // namespace dcpcheck
