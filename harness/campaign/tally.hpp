// Counts of what came of a campaign's cases.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "harness/campaign/answer.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {

using StatusCounts = std::map<Status, std::int64_t>;

struct Tally {
  std::int64_t cases = 0;
  StatusCounts by_status;                       // cases, by their own status
  std::map<std::string, StatusCounts> by_op;    // likewise
  std::map<std::string, StatusCounts> by_law;   // checks; "": every element judged
  std::map<std::string, std::int64_t> skipped;  // checks, by why
  std::int64_t rank_cases = 0;                  // cases times their ranks

  void add(const std::string& op, std::int64_t ranks, const std::vector<Check>& checks);
  void add(const Tally& other);
};

json::Value to_json(const Tally& tally);
// Throws InputError, its sentence beginning with `source`.
Tally tally_from_json(const json::Value& value, const std::string& source);

}  // namespace dcpcheck
