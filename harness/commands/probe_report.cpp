#include "harness/commands/probe_report.hpp"

#include <utility>
#include <vector>

#include "harness/report/findings.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

constexpr int kWide = 100;

json::Array texts(const std::vector<std::string>& values) { return json::Array(values.begin(), values.end()); }

// "fail (inadmissible): q_c_out: wrong values on rank 0, …".
std::string reason_of(const ProbeFailure& failure, const Op& op, const Kernel& kernel) {
  const Verdict& verdict = failure.verdict;
  std::string reason(name_of(verdict.status));
  if (verdict.reason != Reason::none) reason += " (" + std::string(name_of(verdict.reason)) + ")";
  if (!verdict.detail.empty()) return reason + ": " + verdict.detail;
  Result result;
  result.op = op.name;
  result.kernel = kernel.name;
  result.world_size = failure.value.geometry.world_size;
  result.token_rows = failure.value.geometry.live_tokens();
  result.verdict = verdict;
  const std::vector<std::string> sentences = describe_violations(result);
  return sentences.empty() ? reason : reason + ": " + sentences.front();
}

json::Object failure_json(const ProbeFailure& failure, const Op& op, const Kernel& kernel) {
  return {
      {"id", case_id(op, failure.value)}, {"why", reason_of(failure, op, kernel)}, {"case", case_to_json(op, failure.value)}};
}

std::string failure_in_words(const ProbeFailure& failure, const Op& op, const Kernel& kernel) {
  return "case " + case_id(op, failure.value) + " " + reason_of(failure, op, kernel);
}

json::Array options_json(const Probe& probe, const Op& op, const Kernel& kernel) {
  json::Array options;
  for (const ProbedOption& option : probe.options) {
    json::Array values;
    for (const ProbedValue& value : option.values)
      values.emplace_back(
          json::Object{{"value", value.value},
                       {"passed", value.passed},
                       {"failed", value.failed},
                       {"telling", value.telling},
                       {"first_failure", value.first ? json::Value(failure_json(*value.first, op, kernel)) : json::Value()}});
    options.emplace_back(json::Object{{"name", option.name},
                                      {"followed", texts(option.followed)},
                                      {"not_told_apart", texts(option.alike)},
                                      {"values", std::move(values)}});
  }
  return options;
}

json::Array requirements_json(const Probe& probe, const Op& op, const Kernel& kernel) {
  json::Array requirements;
  for (const ProbedRequirement& each : probe.requirements)
    requirements.emplace_back(json::Object{{"that", each.requirement.that.text()},
                                           {"say", each.requirement.say},
                                           {"broken_failed", each.broken_failed},
                                           {"broken_passed", each.broken_passed},
                                           {"mended", each.mended},
                                           {"not_told_apart", texts(each.alike)},
                                           {"first_failure", failure_json(each.first, op, kernel)}});
  return requirements;
}

std::string of(std::int64_t part, std::int64_t all) { return std::to_string(part) + " of " + text::count(all, "case"); }

void say_option(std::string& page, const ProbedOption& option, const Op& op, const Kernel& kernel) {
  const auto line = [&](const std::string& words, int at) {
    page += text::wrap(std::string(static_cast<std::size_t>(at), ' ') + text::printable(words), kWide, at + 2);
  };
  line(option.name + ": " + text::list(option.followed), 2);
  for (const ProbedValue& value : option.values) {
    std::string words = value.value + ": " + of(value.passed, value.passed + value.failed) + " pass";
    if (value.first) words += "; first " + failure_in_words(*value.first, op, kernel);
    line(words, 4);
  }
  if (!option.alike.empty())
    line("These cases cannot tell " + text::list(option.alike) + " from " + option.followed.front() +
             ": nothing else is right under " + (option.alike.size() == 1 ? "it." : "them."),
         4);
}

}  // namespace

json::Object proposal_json(const Probe& probe, const Op& op) {
  const Declaration proposal = proposal_of(probe, op);
  json::Object out;
  if (!proposal.preset.empty()) out.emplace_back("preset", proposal.preset);
  json::Object contract;
  for (const auto& [name, values] : proposal.options) contract.emplace_back(name, texts(values));
  if (!contract.empty()) out.emplace_back("contract", std::move(contract));
  json::Array requirements;
  for (const Requirement& each : proposal.requirements)
    requirements.emplace_back(json::Object{{"that", each.that.text()}, {"say", each.say}});
  if (!requirements.empty()) out.emplace_back("requirements", std::move(requirements));
  return out;
}

json::Object probe_json(const Probe& probe, const Op& op, const Kernel& kernel, const std::string& backend) {
  json::Array unexplained;
  for (const ProbeFailure& each : probe.unexplained) unexplained.emplace_back(failure_json(each, op, kernel));
  return {{"kernel", kernel.name},
          {"op", op.name},
          {"backend", backend},
          {"fits", probe.fits()},
          {"proposal", probe.fits() ? json::Value(proposal_json(probe, op)) : json::Value()},
          {"cases", probe.cases},
          {"passed", probe.passed},
          {"skipped", probe.skipped},
          {"left_out", probe.left_out},
          {"runs", probe.runs},
          {"options", options_json(probe, op, kernel)},
          {"requirements", requirements_json(probe, op, kernel)},
          {"unexplained_cases", probe.unexplained_cases},
          {"unexplained", std::move(unexplained)}};
}

std::string probe_in_words(const Probe& probe, const Op& op, const Kernel& kernel, const std::string& backend) {
  std::string page =
      text::wrap(text::printable(kernel.name) + ", " + op.name + " on " + backend + ": " + text::count(probe.cases, "case") +
                     ", of which " + std::to_string(probe.passed) + " pass under what fits best" +
                     (probe.left_out > 0 ? ", " + std::to_string(probe.left_out) + " break what it requires" : "") +
                     (probe.skipped > 0 ? ", " + std::to_string(probe.skipped) + " it skips itself" : "") +
                     "; each was run under several options, " + text::count(probe.runs, "run") + " in all",
                 kWide, 2);
  if (!probe.options.empty()) page += "\nContract options, all others being as chosen:\n";
  for (const ProbedOption& option : probe.options) say_option(page, option, op, kernel);
  if (!probe.requirements.empty()) page += "\nRequirements:\n";
  for (const ProbedRequirement& each : probe.requirements) {
    const std::int64_t broken = each.broken_failed + each.broken_passed;
    page += text::wrap("  " + each.requirement.that.text() + ": " + of(each.broken_failed, broken) + " that break it fail; " +
                           std::to_string(each.mended) + " of them pass once it holds and nothing else is changed; first " +
                           text::printable(failure_in_words(each.first, op, kernel)),
                       kWide, 4);
    if (!each.alike.empty())
      page += text::wrap("    These cases cannot tell it from " + text::list(each.alike) + ".", kWide, 6);
  }
  if (probe.fits())
    return page + "\nWhat fits (in a ready line \"contract\" is called \"options\"):\n" +
           json::dump(proposal_json(probe, op), 2) + "\n";
  page += "\nNo declaration fits: ";
  if (probe.unexplained_cases == 0) return page + "no case was there to pass.\n";
  page += text::count(probe.unexplained_cases, "case") + " fail" + (probe.unexplained_cases == 1 ? "s" : "") +
          " under every option, and break nothing that a kernel could require. The first:\n";
  for (const ProbeFailure& each : probe.unexplained)
    page += text::wrap("  " + text::printable(failure_in_words(each, op, kernel)), kWide, 4);
  return page;
}

}  // namespace dcpcheck
