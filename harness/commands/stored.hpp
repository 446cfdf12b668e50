// What the verbs of campaigns share: stored cases, the words of workers and of replay lines, times.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/campaign/campaign.hpp"
#include "harness/commands/context.hpp"
#include "harness/commands/options.hpp"

namespace dcpcheck {

// The path of this process's own program.
std::string this_program();

// "90s", "30m", "2h", "1h30m", or a number of seconds. Throws InputError where it is none, or more than `most` seconds.
std::chrono::seconds parse_time(const std::string& option, std::string_view text, std::int64_t most);

// The cases of the folders: those under regressions/ first, then findings/, then the others, by path. Each once, by id and law.
// `digest` is made that of all of them. Throws InputError.
std::vector<StoredCase> stored_cases(const Context& context, const std::vector<std::string>& folders, std::int64_t memory,
                                     std::string& digest);

// The words that start a worker of the campaign.
std::vector<std::string> worker_command(const CampaignSpec& spec, bool no_self_test);

// The words that a replay line begins with.
std::vector<std::string> replay_words(const Context& context, const CampaignSpec& spec);

// Who ran a campaign, where, and how long.
json::Value run_to_json(const Context& context, const RunSettings& settings, const Shard& shard, const CampaignEnd& end);

}  // namespace dcpcheck
