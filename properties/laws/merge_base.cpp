#include <algorithm>
#include <cstring>

#include "harness/core/philox.hpp"
#include "properties/laws/parts.hpp"
#include "properties/laws/relaunch.hpp"

namespace dcpcheck::laws {
namespace {

// LSEs whose weights are 1, 1/2, 1/4, … in base 2, the last two alike: they sum to 2, and the merge of small integers is exact.
float lse_of(std::size_t part, std::size_t parts) { return -static_cast<float>(std::min(part, parts - 2)); }

std::int64_t value_of(const Stream& stream, std::int64_t i) {
  return 1 + static_cast<std::int64_t>(stream.word(static_cast<std::uint64_t>(i)) % 31);
}

LawFindings check_merge_base(Trial& trial) {
  const Plan& plan = trial.plan();
  const std::vector<PartOfMerge> parts = parts_of(plan);
  if (parts.size() < 2 || parts.size() > 16) return silent("it takes 2 to 16 parts");
  if (plan.live == 0) return silent("there are no live tokens");
  Case value = plan.value;
  if (const auto base = value.contract.find("lse_base"); base == value.contract.end() || base->second != "2")
    return silent("the LSEs are not of base 2");
  Setting setting = trial.setting();
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const Stream stream(value.seed, "merge base", static_cast<std::uint32_t>(part));
    for (std::int64_t token = 0; token < plan.tokens; ++token) {
      PartRow out(setting.inputs, *parts[part].out, parts[part].index, token);
      PartRow lse(setting.inputs, *parts[part].lse, parts[part].index, token);
      for (std::int64_t i = 0; i < out.size(); ++i) out.set(i, static_cast<float>(value_of(stream, token * out.size() + i)));
      for (std::int64_t i = 0; i < lse.size(); ++i) lse.set(i, lse_of(part, parts.size()));
    }
  }
  const Observation seen = trial.observe(setting);
  if (!seen.refused.empty()) return silent("the launch was refused: " + seen.refused);
  Differences differences("merge_base", plan);
  const std::int64_t width = plan.tensor("out").columns();
  for (std::int64_t token = 0; token < plan.live; ++token) {
    Bytes should(static_cast<std::size_t>(width) * sizeof(float));
    for (std::int64_t i = 0; i < width; ++i) {
      double sum = 0;  // of at most 21 bits: exact
      for (std::size_t part = 0; part < parts.size(); ++part) {
        const Stream stream(value.seed, "merge base", static_cast<std::uint32_t>(part));
        sum += static_cast<double>(value_of(stream, token * width + i)) *
               (1.0 / static_cast<double>(std::int64_t{1} << std::min(part, parts.size() - 2)));
      }
      const auto exact = static_cast<float>(sum / 2);
      std::memcpy(should.data() + static_cast<std::size_t>(i) * sizeof exact, &exact, sizeof exact);
    }
    for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
      differences.compare("out", static_cast<std::int64_t>(rank), token,
                          seen.ranks[rank].at("out")[static_cast<std::size_t>(token)], should,
                          "halves, quarters and so on of small integers add up to");
    }
  }
  LawFindings findings;
  findings.compared = differences.compared();
  findings.violations = differences.take();
  return findings;
}

}  // namespace

Law merge_base() {
  return {"merge_base", "LSEs of base 2 that lie whole numbers apart weigh their parts by exact halves, quarters and so on.",
          false, check_merge_base};
}

}  // namespace dcpcheck::laws
