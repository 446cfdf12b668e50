// A campaign: stored cases first, then generated ones, in worker processes, for as long as it is given; what does not pass is
// told in a journal, and what is found is run again, made small, and kept in a file.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "harness/campaign/coverage.hpp"
#include "harness/campaign/finding.hpp"
#include "harness/campaign/journal.hpp"
#include "harness/campaign/shrinking.hpp"
#include "harness/campaign/spec.hpp"
#include "harness/campaign/state.hpp"
#include "harness/campaign/worker_link.hpp"
#include "harness/core/case.hpp"
#include "harness/report/report.hpp"

namespace dcpcheck {

// A case that is run before those that are generated, on each lane of its op.
struct StoredCase {
  std::string name;  // how reports call it
  Case value;
  std::string law;       // that it is held to; "": every element is judged
  Expectation expected;  // of a kernel that is not known to be wrong
};

struct CampaignOptions {
  CampaignSpec spec;
  std::string folder;                        // journal, findings/ and report.json are in it
  bool resume = false;                       // go on with what is in the folder
  int jobs = 1;                              // workers
  std::optional<std::chrono::seconds> time;  // after which no further case is begun
  std::vector<StoredCase> stored;
  std::optional<Case> base;         // each case is this one with a seed of its own, in place of generated ones
  std::vector<std::string> worker;  // the words that start one, worker_words() included
  std::vector<std::string> replay;  // the words of a replay line: "dcpcheck", "run", …
  std::chrono::milliseconds case_limit{60'000}, start_limit{600'000};
  int reruns = 5;  // of a case that did not pass
  std::int64_t shrink_evaluations = 400;
  std::chrono::seconds shrink_time{300};  // a safety stop
  std::int64_t memory = 0;                // bytes that a shrunk case may take
  std::string tool;                       // version and revision
  const Ops* ops = nullptr;
  const std::atomic<int>* interrupted = nullptr;
  std::ostream* progress = nullptr;  // stderr
  bool terminal = false;             // that is one
};

struct CampaignEnd {
  CampaignState state;
  std::vector<LaneCoverage> coverage;   // of what this run and those before it did
  double seconds = 0;                   // of this run
  std::int64_t ran = 0;                 // cases of this run
  std::map<std::string, double> spent;  // seconds of its workers, by what they went into
  int signal = 0;                       // that ended it
  std::string torn;                     // see JournalContents
};

// Runs the campaign. Throws InputError where the folder holds another campaign, or is another campaign's, or a kernel cannot be
// had; HarnessError where the disk is full or no worker can be started. What had been done until then is in the folder.
CampaignEnd run_campaign(const CampaignOptions& options);

}  // namespace dcpcheck
