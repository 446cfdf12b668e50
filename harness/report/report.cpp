#include "harness/report/report.hpp"

#include <algorithm>
#include <set>

namespace dcpcheck {
namespace {

bool is_answer(Status status) { return status != Status::skipped && status != Status::inconclusive; }

}  // namespace

bool matches(const Expectation& expected, const Verdict& verdict) {
  if (verdict.status != expected.status) return false;
  if (expected.buffers) {
    std::set<std::string> found;
    for (const Violation& violation : verdict.violations) found.insert(violation.buffer);
    if (found != std::set<std::string>(expected.buffers->begin(), expected.buffers->end())) return false;
  }
  if (!expected.reasons) return true;
  const auto allowed = [&](Reason reason) {
    return std::find(expected.reasons->begin(), expected.reasons->end(), name_of(reason)) != expected.reasons->end();
  };
  // A refused launch has a reason and no violation.
  if (verdict.violations.empty() && verdict.reason != Reason::none) return allowed(verdict.reason);
  return std::all_of(verdict.violations.begin(), verdict.violations.end(),
                     [&](const Violation& violation) { return allowed(violation.reason); });
}

std::optional<std::int64_t> first_difference(const std::vector<std::vector<std::int32_t>>& a,
                                             const std::vector<std::vector<std::int32_t>>& b) {
  std::optional<std::int64_t> first;
  const std::vector<std::int32_t> none;
  for (std::size_t request = 0; request < std::max(a.size(), b.size()); ++request) {
    const auto& one = request < a.size() ? a[request] : none;
    const auto& other = request < b.size() ? b[request] : none;
    const auto at = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
    if (at.first == one.end() && at.second == other.end()) continue;
    const auto step = static_cast<std::int64_t>(at.first - one.begin());
    first = first ? std::min(*first, step) : step;
  }
  return first;
}

Summary summarise(const Report& report) {
  Summary summary;
  for (const Status status : kStatuses) summary.counts[status] = 0;
  for (const Result& result : report.results) {
    ++summary.counts[result.verdict.status];
    ++summary.total;
    if (result.as_expected) ++summary.as_expected;
  }
  summary.ok = exit_code(report) == 0;
  return summary;
}

int exit_code(const Report& report) {
  const auto& results = report.results;
  const auto wrong = [](const Result& result) { return !result.as_expected && is_answer(result.verdict.status); };
  if (std::any_of(results.begin(), results.end(), wrong)) return 1;
  const auto& relations = report.relations;
  if (!std::all_of(relations.begin(), relations.end(), [](const Relation& relation) { return relation.as_expected(); }))
    return 1;
  if (std::any_of(results.begin(), results.end(), [](const Result& result) { return is_answer(result.verdict.status); }))
    return 0;
  const auto skipped = [](const Result& result) { return result.verdict.status == Status::skipped; };
  return !results.empty() && std::all_of(results.begin(), results.end(), skipped) ? 77 : 3;
}

}  // namespace dcpcheck
