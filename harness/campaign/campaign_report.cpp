#include "harness/campaign/campaign_report.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "harness/campaign/words.hpp"
#include "harness/core/error.hpp"
#include "harness/core/plan.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

std::string counts_in_words(const StatusCounts& counts) {
  std::vector<std::string> words;
  for (const auto& [status, count] : counts)
    if (count > 0) words.push_back(std::to_string(count) + " " + std::string(name_of(status)));
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : ", ") + word;
  return line;
}

std::string law_in_words(const std::string& law) { return law.empty() ? "every element" : law; }

std::string size_in_words(const Case& value) {
  return text::count(value.geometry.live_tokens(), "token") + ", " + text::count(value.geometry.tp, "rank");
}

bool is_red(const TellFinding& one) { return !one.known || one.expired; }

std::string headline(const TellFinding& one) {
  const Signature& signature = one.met.signature;
  std::string line = signature.kernel;
  if (!signature.kernel.ends_with(":" + signature.op) && signature.kernel.find(":" + signature.op + "@") == std::string::npos)
    line += " in " + signature.op;
  line += ", " + law_in_words(signature.law) + ": " + std::string(name_of(one.met.check.status)) + " (" + signature.reason;
  if (!signature.buffer.empty()) line += ", " + signature.buffer;
  line += "), " + text::count(one.met.cases, "case");
  if (one.known)
    line += ", known: " + one.known->issue + (one.expired ? ", which expired on " : " until ") + one.known->expires;
  return line;
}

std::string paragraph(const TellFinding& one) {
  std::string lines = text::wrap(headline(one), text::kColumns, 2);
  const Check& check = one.finding ? one.finding->check : one.met.check;
  for (const std::string& sentence : check.what) lines += text::wrap("  " + sentence, text::kColumns, 4);
  if (check.what.empty() && !check.detail.empty()) lines += text::wrap("  " + text::printable(check.detail), text::kColumns, 4);
  if (!one.finding) return lines + "    its file is not there, or is none\n";
  const Finding& finding = *one.finding;
  std::string shrunk =
      "  smallest case: " + size_in_words(finding.value) + " (from " + size_in_words(finding.from) + ", " + finding.of + ")";
  if (!finding.stopped.empty()) shrunk += "; made no smaller " + finding.stopped;
  if (finding.reruns.empty()) shrunk += "; not looked into yet";
  lines += text::wrap(shrunk, text::kColumns, 4);
  return lines + "    to replay it:\n" + replay_line(finding, one.path) + "\n";
}

}  // namespace

std::vector<TellFinding> tell_findings(const Ops& ops, const CampaignState& state, const std::string& folder,
                                       const std::vector<Known>& known, const std::string& today) {
  std::vector<TellFinding> findings;
  for (auto& [id, met] : findings_of(state)) {
    TellFinding one;
    one.met = met;
    one.path = path_of(folder, id);
    std::error_code error;
    if (std::filesystem::exists(one.path, error)) {
      try {
        one.finding = finding_from_json(ops, json::parse(json::text_of(one.path), one.path), one.path);
      } catch (const InputError&) {
        one.finding.reset();  // somebody changed it: the rest is told all the same
      }
    }
    if (const Known* const entry = known_as(known, met.signature)) {
      one.known = *entry;
      one.expired = has_expired(*entry, today);
    }
    findings.push_back(std::move(one));
  }
  return findings;
}

int exit_code(const CampaignReport& report) {
  const StatusCounts& counts = report.state.tally.by_status;
  const auto count = [&](Status status) {
    const auto at = counts.find(status);
    return at == counts.end() ? 0 : at->second;
  };
  if (std::any_of(report.findings.begin(), report.findings.end(), is_red) || count(Status::inconclusive) > 0) return 1;
  // Each of these is among the findings, or the journal is not whole.
  if (report.findings.empty() && count(Status::fail) + count(Status::crash) + count(Status::hang) > 0) return 1;
  if (report.state.tally.cases == 0) return 3;
  return count(Status::skipped) == report.state.tally.cases ? 77 : 0;
}

json::Value to_json(const Ops& ops, const CampaignReport& report) {
  CampaignSpec spec = report.state.spec;
  spec.shard = Shard{};
  json::Array coverage, findings;
  for (const LaneCoverage& lane : report.coverage) {
    const Lane& of = report.state.lanes.at(lane.lane);
    coverage.push_back(json::Object{{"op", of.op}, {"kernel", of.kernel}, {"first", lane.first}, {"met", lane.coverage}});
  }
  std::int64_t known = 0;
  for (const TellFinding& one : report.findings) {
    json::Object entry{{"id", id_of(one.met.signature)},
                       {"signature", to_json(one.met.signature)},
                       {"status", std::string(name_of(one.met.check.status))},
                       {"cases", one.met.cases},
                       {"first", static_cast<std::int64_t>(one.met.first)}};
    known += one.known && !one.expired ? 1 : 0;
    entry.emplace_back("known",
                       one.known ? json::Value(json::Object{
                                       {"issue", one.known->issue}, {"expires", one.known->expires}, {"expired", one.expired}})
                                 : json::Value());
    if (one.finding) {
      const Finding& finding = *one.finding;
      entry.emplace_back("of", finding.of);
      entry.emplace_back("case", case_id(ops.at(finding.value.op), finding.value));
      entry.emplace_back("tokens", finding.value.geometry.live_tokens());
      entry.emplace_back("ranks", finding.value.geometry.tp);
      entry.emplace_back("detail", finding.check.detail);
      entry.emplace_back("what", array_of(finding.check.what));
      entry.emplace_back("stopped", finding.stopped);
    }
    findings.push_back(std::move(entry));
  }
  const auto count = static_cast<std::int64_t>(report.findings.size());
  return json::Object{{"schema", "dcpcheck.campaign/1"},
                      {"spec", to_json(spec)},
                      {"lanes", lanes_to_json(report.state.lanes)},
                      {"tally", to_json(report.state.tally)},
                      {"coverage", std::move(coverage)},
                      {"findings", std::move(findings)},
                      {"summary", json::Object{{"findings", count}, {"known", known}, {"exit", exit_code(report)}}},
                      {"runs", report.runs}};
}

std::string to_text(const CampaignReport& report) {
  const Tally& tally = report.state.tally;
  std::string lines;
  if (!tally.skipped.empty()) {
    lines += "Skipped:\n";
    for (const auto& [why, count] : tally.skipped)
      lines += text::wrap("  " + std::to_string(count) + ": " + text::printable(why), text::kColumns, 4);
    lines += "\n";
  }
  if (tally.cases > 0) lines += "Cases by op:\n";
  for (const auto& [op, counts] : tally.by_op)
    lines += text::wrap("  " + op + ": " + counts_in_words(counts), text::kColumns, 4);
  if (tally.cases > 0) lines += "Checks by law:\n";
  for (const auto& [law, counts] : tally.by_law)
    lines += text::wrap("  " + law_in_words(law) + ": " + counts_in_words(counts), text::kColumns, 4);
  for (const LaneCoverage& lane : report.coverage) {
    const json::Value* pairs = lane.coverage.find("pairs");
    if (pairs == nullptr) continue;
    const Lane& of = report.state.lanes.at(lane.lane);
    lines += text::wrap("Pairs of buckets met on " + of.kernel + ": " + json::dump(*pairs->find("met")) + " of " +
                            json::dump(*pairs->find("feasible")),
                        text::kColumns, 2);
  }
  std::int64_t known = 0;
  for (const bool red : {false, true}) {
    for (const TellFinding& one : report.findings) {
      if (is_red(one) != red) continue;
      known += red ? 0 : 1;
      lines += "\n" + paragraph(one);
    }
  }
  lines += "\n" + text::count(tally.cases, "case") + " (" + std::to_string(tally.rank_cases) +
           " with their ranks): " + (tally.cases == 0 ? "none was run" : counts_in_words(tally.by_status)) + "; " +
           text::count(std::ssize(report.findings), "finding") +
           (known > 0 ? ", " + std::to_string(known) + " of them known" : "") + "\n";
  return lines;
}

}  // namespace dcpcheck
