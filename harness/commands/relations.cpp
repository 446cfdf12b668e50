#include "harness/commands/relations.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

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

bool expects_broken_rows(const Expectation& expected) {
  if (expected.status == Status::pass) return false;
  if (!expected.buffers) return true;
  return std::any_of(std::begin(kBuffers), std::end(kBuffers), [&](std::string_view buffer) {
    return std::find(expected.buffers->begin(), expected.buffers->end(), buffer) != expected.buffers->end();
  });
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
    Relation relation{name.scenario, "k_rows", run.kernel->fault, backend, {}, k_rows(*other), false, true};
    if (alone.empty() || relation.dcp4.empty()) continue;
    relation.dcp1 = alone.front();
    const auto same = [&](const std::string& digest) { return digest == relation.dcp1; };
    relation.equal =
        std::all_of(alone.begin(), alone.end(), same) && std::all_of(relation.dcp4.begin(), relation.dcp4.end(), same);
    relation.expected_equal = !expects_broken_rows(expectation_of(other->job->named->file, *run.kernel));
    relations.push_back(std::move(relation));
  }
  return relations;
}

}  // namespace dcpcheck
