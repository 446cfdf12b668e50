#include <algorithm>
#include <cmath>

#include "harness/core/philox.hpp"
#include "properties/laws/parts.hpp"
#include "properties/laws/relaunch.hpp"

namespace dcpcheck::laws {
namespace {

// Parts of equal LSEs and small integers: with as many parts as a power of two, the mean is exact in whatever order.
Setting equal_parts(Trial& trial, const std::vector<PartOfMerge>& parts, std::size_t turned) {
  Setting setting = trial.setting();
  const Plan& plan = trial.plan();
  for (std::size_t place = 0; place < parts.size(); ++place) {
    const std::size_t part = (place + turned) % parts.size();
    const Stream stream(plan.value.seed, "merge order", static_cast<std::uint32_t>(part));
    for (std::int64_t token = 0; token < plan.tokens; ++token) {
      PartRow out(setting.inputs, *parts[place].out, parts[place].index, token);
      PartRow lse(setting.inputs, *parts[place].lse, parts[place].index, token);
      for (std::int64_t i = 0; i < out.size(); ++i) {
        const std::uint64_t word = stream.word(static_cast<std::uint64_t>(token * out.size() + i));
        out.set(i, static_cast<float>(1 + word % 31));
      }
      for (std::int64_t i = 0; i < lse.size(); ++i) lse.set(i, static_cast<float>(token % 7));
    }
  }
  return setting;
}

LawFindings check_merge_order(Trial& trial) {
  const Plan& plan = trial.plan();
  const std::vector<PartOfMerge> parts = parts_of(plan);
  if (parts.size() < 2) return silent("there is one part");
  if ((parts.size() & (parts.size() - 1)) != 0) return silent("the number of parts is no power of two");
  if (plan.live == 0) return silent("there are no live tokens");
  const Observation first = trial.observe(equal_parts(trial, parts, 0));
  if (!first.refused.empty()) return silent("the launch was refused: " + first.refused);
  Differences differences("merge_order", plan);
  for (std::size_t turned = 1; turned < std::min<std::size_t>(parts.size(), 4); ++turned) {
    const Observation other = trial.observe(equal_parts(trial, parts, turned));
    if (!other.refused.empty()) return silent("the launch was refused: " + other.refused);
    for (std::size_t rank = 0; rank < first.ranks.size(); ++rank) {
      for (std::int64_t token = 0; token < plan.live; ++token) {
        differences.compare("out", static_cast<std::int64_t>(rank), token, other.ranks[rank].at("out")[token],
                            first.ranks[rank].at("out")[token], "with the parts in another order");
      }
    }
  }
  LawFindings findings;
  findings.compared = differences.compared();
  findings.violations = differences.take();
  return findings;
}

}  // namespace

Law merge_order() {
  return {"merge_order", "Parts of equal weight and small integers merge to the same bits in any order.", false,
          check_merge_order};
}

}  // namespace dcpcheck::laws
