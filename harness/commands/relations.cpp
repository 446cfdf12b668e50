#include "harness/commands/relations.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "harness/core/digest.hpp"
#include "harness/report/console.hpp"

namespace dcpcheck {
namespace {

constexpr std::string_view kBuffers[] = {"kv_c_out", "k_pe_out"};

// By rank; empty where the op has no such rows.
std::vector<std::string> k_rows(const Consumed& run) {
  std::vector<std::string> ranks;
  for (std::int64_t rank = 0;; ++rank) {
    std::map<std::string, std::string> found;
    for (const std::string_view buffer : kBuffers) {
      const auto digest = run.digests.find("rank" + std::to_string(rank) + "/" + std::string(buffer));
      if (digest != run.digests.end()) found.emplace(buffer, digest->second);
    }
    if (found.empty()) return ranks;
    ranks.push_back(combine_digests(found));
  }
}

// Whether what is expected is a failure in one of `buffers`.
bool expects_broken(const Expectation& expected, const std::vector<std::string>& buffers) {
  if (expected.status == Status::pass) return false;
  if (!expected.buffers) return true;
  return std::any_of(buffers.begin(), buffers.end(), [&](const std::string& buffer) {
    return std::find(expected.buffers->begin(), expected.buffers->end(), buffer) != expected.buffers->end();
  });
}

bool has_ids(const Tokens& tokens) {
  return std::any_of(tokens.ids.begin(), tokens.ids.end(), [](const auto& ids) { return !ids.empty(); });
}

// Whether it has tokens and ran under `world_size`, as its name must say too.
bool is_run_of(const Result& result, std::int64_t world_size) {
  return result.tokens && result.world_size == world_size && scenario_of(result.name).world_size == world_size;
}

// The first step up to `last` that is open in either run.
std::optional<std::int64_t> first_open_step(const Tokens& a, const Tokens& b, std::int64_t last) {
  const auto open = [](const Tokens& tokens, std::size_t step) {
    return step < tokens.steps.size() && !tokens.steps[step].conclusive();
  };
  for (std::int64_t step = 0; step <= last; ++step) {
    const auto at = static_cast<std::size_t>(step);
    if (open(a, at) || open(b, at)) return step;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> k_rows_buffers() { return {std::begin(kBuffers), std::end(kBuffers)}; }

std::vector<Relation> k_rows_relations(const std::vector<Consumed>& runs, const std::string& backend) {
  std::vector<Relation> relations;
  for (const Consumed& run : runs) {
    const ScenarioName name = scenario_of(run.job->named->file.name);
    if (name.world_size != 1) continue;
    const auto other = std::find_if(runs.begin(), runs.end(), [&](const Consumed& candidate) {
      const ScenarioName there = scenario_of(candidate.job->named->file.name);
      return candidate.kernel == run.kernel && there.scenario == name.scenario && there.world_size == 4;
    });
    if (other == runs.end()) continue;
    const std::vector<std::string> alone = k_rows(run);
    Relation relation;
    relation.scenario = name.scenario;
    relation.quantity = kKRows;
    relation.fault = run.kernel->fault;
    relation.backend = backend;
    relation.dcp4 = k_rows(*other);
    if (alone.empty() || relation.dcp4.empty()) continue;
    relation.dcp1 = alone.front();
    const auto same = [&](const std::string& digest) { return digest == relation.dcp1; };
    relation.equal =
        std::all_of(alone.begin(), alone.end(), same) && std::all_of(relation.dcp4.begin(), relation.dcp4.end(), same);
    relation.expected_equal = !expects_broken(expectation_of(other->job->named->file, *run.kernel), k_rows_buffers());
    relations.push_back(std::move(relation));
  }
  return relations;
}

std::vector<Relation> token_relations(const std::vector<Result>& results) {
  std::vector<Relation> relations;
  for (const Result& alone : results) {
    if (!is_run_of(alone, 1)) continue;
    const std::string scenario = scenario_of(alone.name).scenario;
    const auto split = std::find_if(results.begin(), results.end(), [&](const Result& candidate) {
      return is_run_of(candidate, 4) && scenario_of(candidate.name).scenario == scenario && candidate.op == alone.op &&
             candidate.kernel == alone.kernel && candidate.backend == alone.backend;
    });
    // Where neither put out a token, that they agree would say nothing.
    if (split == results.end() || (!has_ids(*alone.tokens) && !has_ids(*split->tokens))) continue;
    Relation relation;
    relation.scenario = scenario;
    relation.quantity = kTokens;
    relation.fault = alone.fault;
    relation.backend = alone.backend;
    relation.dcp1 = alone.tokens->digest;
    relation.dcp4 = {split->tokens->digest};
    relation.dcp1_ids = alone.tokens->ids;
    relation.dcp4_ids = split->tokens->ids;
    const auto part = first_difference(relation.dcp1_ids, relation.dcp4_ids);
    relation.equal = !part;
    if (part) relation.inconclusive_at = first_open_step(*alone.tokens, *split->tokens, *part);
    relation.expected_equal = !expects_broken(split->expected, {std::string(kTokens)});
    relations.push_back(std::move(relation));
  }
  return relations;
}

}  // namespace dcpcheck
