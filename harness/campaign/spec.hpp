// What a campaign runs, as a value: what its journal begins with, and what its shards must have in common.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/campaign/schedule.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {

struct CampaignSpec {
  std::uint64_t seed = 0;
  std::string backend;                         // "host", "cuda"
  std::vector<std::string> kernels;            // as given; empty: the fixed kernel of each op
  std::vector<std::string> ops;                // as given; empty: those of the kernels
  std::vector<std::string> op_folders;         // --ops
  std::vector<std::string> laws;               // as given; empty: every element is judged, and one of the op's laws asked
  std::map<std::string, std::int64_t> shares;  // by op
  std::string base;                            // --from: the case that each case is, with a seed of its own
  std::vector<std::string> settings;           // --set
  std::vector<std::string> corpora;            // --corpus
  std::string corpus_digest;                   // of the stored cases that are run first, and their order
  std::string memory;                          // as given
  std::uint64_t cases = 0;                     // generated ones, over all shards; 0: as many as there is time for
  Shard shard;
  friend bool operator==(const CampaignSpec&, const CampaignSpec&) = default;
};

json::Value to_json(const CampaignSpec& spec);
// Throws InputError, its sentence beginning with `source`.
CampaignSpec spec_from_json(const json::Value& value, const std::string& source);

// Which of the two differ, as options a person gives, but for the number of cases; "" where none does.
std::string difference(const CampaignSpec& a, const CampaignSpec& b);

// The arguments of a worker of that campaign, after the program's name.
std::vector<std::string> worker_words(const CampaignSpec& spec);

}  // namespace dcpcheck
