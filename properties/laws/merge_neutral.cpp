#include <cmath>
#include <limits>

#include "properties/laws/parts.hpp"
#include "properties/laws/relaunch.hpp"

namespace dcpcheck::laws {
namespace {

// All parts but one are made empty, and hold what nobody wrote: what is left must come out as it went in.
LawFindings check_merge_neutral(Trial& trial) {
  const Plan& plan = trial.plan();
  const std::vector<PartOfMerge> parts = parts_of(plan);
  if (parts.size() < 2) return silent("there is nothing to merge with");
  if (plan.live == 0) return silent("there are no live tokens");
  Differences differences("merge_neutral", plan);
  for (std::size_t kept = 0; kept < parts.size(); ++kept) {
    Setting setting = trial.setting();
    for (std::size_t other = 0; other < parts.size(); ++other) {
      if (other == kept) continue;
      for (std::int64_t token = 0; token < plan.tokens; ++token) {
        PartRow out(setting.inputs, *parts[other].out, parts[other].index, token);
        PartRow lse(setting.inputs, *parts[other].lse, parts[other].index, token);
        for (std::int64_t i = 0; i < out.size(); ++i) out.set(i, std::numeric_limits<float>::quiet_NaN());
        for (std::int64_t i = 0; i < lse.size(); ++i) lse.set(i, -std::numeric_limits<float>::infinity());
      }
    }
    const Observation seen = trial.observe(setting);
    if (!seen.refused.empty()) return silent("the launch was refused: " + seen.refused);
    for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
      for (std::int64_t token = 0; token < plan.live; ++token) {
        PartRow out(setting.inputs, *parts[kept].out, parts[kept].index, token);
        PartRow lse(setting.inputs, *parts[kept].lse, parts[kept].index, token);
        const Bytes& merged = seen.ranks[rank].at("out")[static_cast<std::size_t>(token)];
        const Bytes& merged_lse = seen.ranks[rank].at("lse")[static_cast<std::size_t>(token)];
        const std::int64_t width = out.size() / std::max<std::int64_t>(lse.size(), 1);
        Bytes should = merged, should_lse = merged_lse;
        bool any = false;  // head that says something
        for (std::int64_t head = 0; head < lse.size(); ++head) {
          const float kept_lse = lse.get(head);
          if (!std::isfinite(kept_lse)) continue;  // itself empty
          any = true;
          std::memcpy(should_lse.data() + static_cast<std::size_t>(head) * sizeof(float), &kept_lse, sizeof(float));
          for (std::int64_t i = head * width; i < (head + 1) * width; ++i) {
            const float value = out.get(i);
            // A zero's sign is lost where zeros of the empty parts are added to it.
            if (value == 0 || std::isnan(value)) continue;
            std::memcpy(should.data() + static_cast<std::size_t>(i) * sizeof(float), &value, sizeof(float));
          }
        }
        if (!any) continue;
        differences.compare("out", static_cast<std::int64_t>(rank), token, merged, should, "before it met empty parts");
        differences.compare("lse", static_cast<std::int64_t>(rank), token, merged_lse, should_lse, "before it met empty parts");
      }
    }
  }
  LawFindings findings;
  findings.compared = differences.compared();
  findings.violations = differences.take();
  return findings;
}

}  // namespace

Law merge_neutral() {
  return {"merge_neutral", "A part merged with empty ones comes out as it went in, bit for bit.", false, check_merge_neutral};
}

}  // namespace dcpcheck::laws
