#include "harness/report/label.hpp"

#include "harness/report/findings.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

std::string expectation_in_words(const Expectation& expected) {
  std::string line(name_of(expected.status));
  if (expected.reasons) line += " (" + text::list(*expected.reasons) + ")";
  if (expected.buffers) line += " in " + (expected.buffers->empty() ? "no buffer" : text::list(*expected.buffers));
  return line;
}

// Where tokens part, and whether that says anything.
std::string tokens_in_words(const Relation& relation) {
  const auto step = first_difference(relation.dcp1_ids, relation.dcp4_ids);
  const std::string at = " from step " + std::to_string(step.value_or(0)) + " on";
  std::string line = "tokens under DCP4 differ from those under DCP1" + at;
  if (!relation.inconclusive_at) return line + ", and should " + (relation.expected_equal ? "" : "not ") + "be equal";
  line += *relation.inconclusive_at == step ? ", where the choice was"
                                            : "; at step " + std::to_string(*relation.inconclusive_at) + " the choice was";
  return line + " too narrow to be sure of: inconclusive";
}

}  // namespace

bool is_from_elsewhere(const Result& result) { return !result.kernel.starts_with("builtin:"); }

std::string case_label(const Result& result) {
  return text::printable(result.name.empty() ? result.case_reference : result.name);
}

std::string kernel_label(const Result& result) {
  if (is_from_elsewhere(result)) return text::printable(result.kernel.substr(result.kernel.find_last_of(":/") + 1));
  return result.fault.empty() ? "fixed" : text::printable(result.fault);
}

std::string outcome_in_words(const Result& result) {
  const Verdict& verdict = result.verdict;
  std::string words(name_of(verdict.status));
  if (verdict.reason != Reason::none) words += " (" + std::string(name_of(verdict.reason)) + ")";
  return words + (result.as_expected ? ", as expected" : ", expected " + expectation_in_words(result.expected));
}

std::vector<std::string> reasons_of(const Result& result) {
  std::vector<std::string> reasons;
  for (const std::string& sentence : describe_violations(result)) reasons.push_back(text::printable(sentence));
  if (!result.verdict.detail.empty()) reasons.push_back(text::printable(result.verdict.detail));
  if (!result.cause.empty()) reasons.push_back("Cause: " + text::printable(result.cause));
  return reasons;
}

std::string relation_in_words(const Relation& relation) {
  const std::string kernel = relation.fault.empty() ? "fixed" : relation.fault;
  const std::string head = relation.scenario + ", " + kernel + ", " + relation.backend + ": ";
  if (relation.quantity == kTokens && !relation.equal) return head + tokens_in_words(relation);
  return head + (relation.quantity == kKRows ? "K rows" : relation.quantity) + " under DCP4 " +
         (relation.equal ? "equal" : "differ from") + " those under DCP1, and should " +
         (relation.expected_equal ? "" : "not ") + "be equal";
}

}  // namespace dcpcheck
