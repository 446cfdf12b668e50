// What a campaign has come to, as its journal's records tell it: the live campaign, one that is resumed and the merging of
// several all read and add up the same.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/campaign/answer.hpp"
#include "harness/campaign/intervals.hpp"
#include "harness/campaign/spec.hpp"
#include "harness/campaign/tally.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {

// A case that did not pass.
struct ToldCase {
  std::size_t lane = 0;
  std::string name;           // of a stored case what it is called, of a generated one "case <index> of seed <seed>"
  std::vector<Check> checks;  // those that are told
};

struct CampaignState {
  CampaignSpec spec;
  std::vector<Lane> lanes;
  std::uint64_t stored = 0;                           // how many of the first numbers are stored cases
  Intervals done;                                     // numbers; those of other shards in between, too
  Tally tally;                                        // of those
  std::map<std::uint64_t, ToldCase> told;             // by number, of ranges in the middle of which it ended, too
  std::map<std::string, std::uint64_t> investigated;  // by a finding's id: the number of the case that it was made of
};

json::Value lanes_to_json(const std::vector<Lane>& lanes);
std::vector<Lane> lanes_from_json(const json::Value& value, const std::string& source);

// Records, as they stand in a journal.
json::Value opening(const CampaignSpec& spec, const std::vector<Lane>& lanes, std::uint64_t stored, const std::string& tool);
json::Value range_done(std::uint64_t from, std::uint64_t to, const Tally& tally);
json::Value case_told(std::uint64_t number, const ToldCase& told);
json::Value cases_asked(std::uint64_t cases);  // another number than the campaign was begun with
json::Value finding_made(const std::string& id, std::uint64_t number);

// Adds a record to the state. Throws InputError, its sentence beginning with `source`, where it is none.
void take(CampaignState& state, const json::Value& record, const std::string& source);

// The state that a journal's records come to. Throws InputError where the first is no opening.
CampaignState state_of(const std::vector<json::Value>& records, const std::string& source);

// Whether the number is one of the campaign's shard. `round` is round_of(lanes).
bool is_of_shard(const CampaignState& state, const std::vector<std::size_t>& round, std::uint64_t number);

// Several shards of one campaign as one; `partial`: they need not have run all of the cases that were asked for. Throws
// InputError where they are not of one, one is there twice or missing, or one has not run all of a number of cases that was
// asked for. `names` are the folders, for what it says.
CampaignState merged(const std::vector<CampaignState>& shards, const std::vector<std::string>& names, bool partial = false);

// The signature of a check of a case of that lane.
Signature signature_of(const Lane& lane, const Check& check);

// By id: a signature that was met, how many cases have it, and the first of them.
struct Met {
  Signature signature;
  std::int64_t cases = 0;
  std::uint64_t first = 0;
  Check check;  // of the first
};
std::map<std::string, Met> findings_of(const CampaignState& state);

}  // namespace dcpcheck
