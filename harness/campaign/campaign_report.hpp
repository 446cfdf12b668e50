// What a campaign came to, as a document ("dcpcheck.campaign/1") and as text.
#pragma once

#include <string>
#include <vector>

#include "harness/campaign/coverage.hpp"
#include "harness/campaign/finding.hpp"
#include "harness/campaign/state.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {

// A finding as it is told of: how many cases have it, and whether it was known.
struct TellFinding {
  Met met;
  std::string path;                // of its file
  std::optional<Finding> finding;  // absent: there is no file
  std::optional<Known> known;      // absent: it is new
  bool expired = false;            // it was known, until a day that is past
};

struct CampaignReport {
  CampaignState state;
  std::vector<LaneCoverage> coverage;
  std::vector<TellFinding> findings;  // by id
  json::Value runs;                   // who ran what, where and how long: all that differs between two runs of the same
};

// The findings of the state, with their files from `folder`.
std::vector<TellFinding> tell_findings(const Ops& ops, const CampaignState& state, const std::string& folder,
                                       const std::vector<Known>& known, const std::string& today);

// 0: every case passed or was skipped, or is a finding that is known; 1: there is a finding that is new, or known no longer, or
// a case that is inconclusive; 3: no case was run; 77: all were skipped.
int exit_code(const CampaignReport& report);

// `runs` is last, so that two documents of the same campaign are the same up to it.
json::Value to_json(const Ops& ops, const CampaignReport& report);

// For people, in 80 columns.
std::string to_text(const CampaignReport& report);

}  // namespace dcpcheck
