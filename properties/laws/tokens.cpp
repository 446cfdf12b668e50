#include <algorithm>

#include "harness/core/error.hpp"
#include "properties/laws/relaunch.hpp"

namespace dcpcheck::laws {
namespace {

// The first step from which two right runs may choose otherwise: its margin is too narrow, or is not known, as that of NaNs.
std::size_t conclusive_steps(const Tokens& tokens) {
  std::size_t step = 0;
  while (step < tokens.steps.size() && tokens.steps[step].known && tokens.steps[step].conclusive()) ++step;
  return step;
}

// The cases whose tokens must be those of `value`, and how they differ from it.
std::vector<std::pair<Case, std::string>> others_of(const Case& value) {
  std::vector<std::pair<Case, std::string>> others;
  if (value.geometry.world_size > 1) {
    others.emplace_back(value, "under W = 1");
    others.back().first.geometry.world_size = 1;
    others.back().first.geometry.interleave = 1;
  }
  if (value.choice("mla_layout") != "bf16") return others;
  // What is cached, or in an earlier chunk, is read back from the cache: the same value only where it is not quantised.
  const auto longest = std::max_element(value.geometry.batch.begin(), value.geometry.batch.end(),
                                        [](const Request& a, const Request& b) { return a.uncached < b.uncached; });
  if (longest != value.geometry.batch.end() && longest->uncached > 1) {
    others.emplace_back(value, "with half the prompt cached");
    Request& request = others.back().first.geometry.batch[static_cast<std::size_t>(longest - value.geometry.batch.begin())];
    request.cached += request.uncached / 2;
    request.uncached -= request.uncached / 2;
    others.emplace_back(value, "in chunks of half the tokens");
    others.back().first.geometry.max_batched_tokens = std::max<std::int64_t>((value.geometry.live_tokens() + 1) / 2, 1);
  }
  return others;
}

LawFindings check_tokens(Trial& trial) {
  const CaseResult& own = trial.judged();
  if (!own.tokens) return silent("the run came to no tokens");
  LawFindings findings;
  Differences differences("tokens", trial.plan());
  std::string refused;
  for (const auto& [value, words] : others_of(trial.value())) {
    CaseResult other;
    try {
      other = trial.judge_other(value);
    } catch (const InputError& error) {
      refused = error.what();  // a case that its own rules do not have
      continue;
    }
    if (!other.tokens) continue;
    const std::size_t steps = std::min(conclusive_steps(*own.tokens), conclusive_steps(*other.tokens));
    for (std::size_t request = 0; request < std::min(own.tokens->ids.size(), other.tokens->ids.size()); ++request) {
      const auto& ids = own.tokens->ids[request];
      const auto& others = other.tokens->ids[request];
      for (std::size_t step = 0; step < std::min({steps, ids.size(), others.size()}); ++step) {
        ++findings.compared;
        if (ids[step] == others[step]) continue;
        differences.add("tokens", 0, static_cast<std::int64_t>(request),
                        {{static_cast<std::int64_t>(request), static_cast<std::int64_t>(step)},
                         "",
                         std::to_string(ids[step]),
                         std::to_string(others[step]) + ", as " + words});
      }
    }
  }
  findings.violations = differences.take();
  if (findings.compared == 0 && !refused.empty()) findings.silent = "its other run cannot be: " + refused;
  return findings;
}

}  // namespace

Law tokens() {
  return {"tokens",
          "Greedy tokens are the same for every W, and of a bf16 cache for every split into cached prefix and chunks.", false,
          check_tokens};
}

}  // namespace dcpcheck::laws
