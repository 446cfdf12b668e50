// The lanes of a campaign, as its command line names them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/campaign/worker.hpp"
#include "harness/commands/context.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/verb.hpp"

namespace dcpcheck {

// The options that say what a campaign runs: those of `fuzz` that its workers are given, too.
std::vector<OptionSpec> campaign_options();

// "OP=N" as a share of the rounds. Throws InputError.
std::map<std::string, std::int64_t> parse_shares(const std::vector<std::string>& words);

// The case of --from, of `memory` bytes at the most, with what --set puts into it; nullopt where `from` is empty. Throws
// InputError.
std::optional<Case> base_case(const Context& context, std::int64_t memory, const std::string& from,
                              const std::vector<std::string>& overrides);

// Kernels from elsewhere are loaded. Throws InputError where an option names what there is not, or a kernel that the backend
// cannot run.
std::vector<ServedLane> lanes_for(Context& context, const RunSettings& settings, const Arguments& arguments);

}  // namespace dcpcheck
