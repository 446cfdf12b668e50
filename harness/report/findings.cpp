#include "harness/report/findings.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

constexpr std::size_t kRangesShown = 3;
constexpr std::size_t kIdsShown = 6;

std::string_view in_words(Reason reason) {
  switch (reason) {
    case Reason::none: return "nothing wrong";
    case Reason::unwritten: return "unwritten";
    case Reason::stray_write: return "written where nothing may be";
    case Reason::guard: return "written past its ends";
    case Reason::input_changed: return "changed, although it is an input";
    case Reason::inadmissible: return "wrong values";
    case Reason::uninitialised_read: return "depends on memory that nobody wrote";
    case Reason::race: return "differs between two runs on the same memory";
    case Reason::launch_refused: return "launch refused";
    case Reason::floating_point_mode: return "floating-point mode changed";
    case Reason::process_ended: return "process ended";
    case Reason::timed_out: return "no answer in time";
    case Reason::bad_answer: return "not an answer";
    case Reason::law: return "breaks a law";
    case Reason::nothing_compared: return "nothing compared";
  }
  return "?";
}

bool counts_bytes(Reason reason) {
  return reason == Reason::unwritten || reason == Reason::stray_write || reason == Reason::guard ||
         reason == Reason::input_changed;
}

std::string ranks_in_words(const std::vector<std::int64_t>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + text::ranges(to_ranges(ranks), ranks.size());
}

// The violations of one buffer that have a reason in common, over ranks.
using OverRanks = std::vector<const Violation*>;

std::vector<std::int64_t> ranks_of(const OverRanks& group) {
  std::vector<std::int64_t> list;
  for (const Violation* violation : group) list.push_back(violation->rank);
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

// Buffers that are wrong in the same rows of the same ranks are told together.
bool same_extent(const OverRanks& a, const OverRanks& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Violation* x, const Violation* y) {
    return x->reason == y->reason && x->rank == y->rank && x->token_rows == y->token_rows && x->tokens == y->tokens &&
           x->rows == y->rows && (!x->tokens.empty() || x->count == y->count);
  });
}

// "384", or "380-384" where the ranks differ.
std::string spread(const OverRanks& group, std::int64_t Violation::*number) {
  const auto [least, most] = std::minmax_element(
      group.begin(), group.end(), [&](const Violation* x, const Violation* y) { return x->*number < y->*number; });
  std::string line = std::to_string((*least)->*number);
  if ((*least)->*number != (*most)->*number) line.append("-").append(std::to_string((*most)->*number));
  return line;
}

std::string first_element(const Violation& violation) {
  // What is unwritten holds the poison, which tells a person nothing.
  if (violation.first.empty() || violation.reason == Reason::unwritten) return {};
  const Element& element = violation.first.front();
  std::vector<std::string> parts;
  for (const std::int64_t index : element.index) parts.push_back(std::to_string(index));
  std::string line = counts_bytes(violation.reason) ? "; first at byte " : "; first at [";
  for (std::size_t i = 0; i < parts.size(); ++i) line.append(i == 0 ? "" : ", ").append(parts[i]);
  if (!counts_bytes(violation.reason)) line += "]";
  if (!element.field.empty()) line += " of " + element.field;
  if (!element.got.empty()) line += ": got " + element.got;
  if (!element.admissible.empty()) line += ", should be " + element.admissible;
  return line;
}

// `token_rows`: the launch's; absent where they are not known.
std::string sentence(const std::vector<std::string>& buffers, const OverRanks& group,
                     const std::optional<std::int64_t>& token_rows) {
  const Violation& first = *group.front();
  const std::vector<std::int64_t> ranks = ranks_of(group);
  const bool several = ranks.size() > 1;
  const std::string what = first.law.empty() ? std::string(in_words(first.reason)) : "breaks the law " + first.law;
  std::string line = text::list(buffers) + ": " + what + " on " + ranks_in_words(ranks);
  const bool by_rows = first.token_rows > 0;
  if (by_rows) {
    const std::string number = spread(group, &Violation::token_rows);
    line += ", " + number;
    if (first.rows > 0) line += " of " + text::count(first.rows, "row");
    if (first.rows == 0 && token_rows) line += " of " + text::count(*token_rows, "token row");
    if (first.rows == 0 && !token_rows) line += number == "1" ? " token row" : " token rows";
    if (several) line += " each";
    line += several ? " (rank " + std::to_string(first.rank) + ": " : " (";
    line += first.rows > 0 ? "row" : "token";
    line += first.token_rows == 1 ? " " : "s ";
    line += text::ranges(first.tokens, kRangesShown) + ")";
  }
  if (!by_rows || first.reason == Reason::inadmissible) {
    const std::string number = spread(group, &Violation::count);
    line += ", " + number + (counts_bytes(first.reason) ? " byte" : " element") + (number == "1" ? "" : "s");
    if (several) line += " each";
  }
  return line + first_element(first);
}

// "decode.3" as "decode." and 3; no number where it has none.
struct StageName {
  std::string word;
  std::optional<std::int64_t> number;
};

StageName stage_name(const std::string& stage) {
  const std::size_t dot = stage.rfind('.');
  if (dot == std::string::npos) return {stage, {}};
  std::int64_t number = 0;
  const char* end = stage.data() + stage.size();
  const auto [stop, error] = std::from_chars(stage.data() + dot + 1, end, number);
  if (error != std::errc{} || stop != end) return {stage, {}};
  return {stage.substr(0, dot + 1), number};
}

// "prefill.1, decode.0 to decode.14".
std::string stages_in_words(const std::vector<std::string>& stages) {
  std::vector<std::pair<std::string, std::string>> runs;
  StageName last;
  for (const std::string& stage : stages) {
    const StageName here = stage_name(stage);
    const bool next = !runs.empty() && here.number && last.number && here.word == last.word && *here.number == *last.number + 1;
    if (next) {
      runs.back().second = stage;
    } else {
      runs.emplace_back(stage, stage);
    }
    last = here;
  }
  std::string line;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i > 0) line += ", ";
    if (i == kRangesShown) return line + "…";
    line += runs[i].first;
    if (runs[i].second != runs[i].first) line += " to " + runs[i].second;
  }
  return line;
}

// What is wrong with one buffer in one way: in each stage that it occurs in, over ranks.
struct Kind {
  const Violation* first = nullptr;
  std::vector<std::string> stages;  // as they first occur; one, with no name, outside pipelines
  std::map<std::string, OverRanks> by_stage;

  const OverRanks& in_first_stage() const { return by_stage.at(stages.front()); }
};

// In the verdict's order: by the first violation of the kind.
std::vector<Kind> kinds_of(const Verdict& verdict) {
  std::vector<Kind> kinds;
  std::map<std::tuple<std::string, std::string, Reason>, std::size_t> known;
  for (const Violation& violation : verdict.violations) {
    const auto [entry, fresh] = known.emplace(std::tuple(violation.op, violation.buffer, violation.reason), kinds.size());
    if (fresh) kinds.push_back({&violation, {}, {}});
    Kind& kind = kinds[entry->second];
    OverRanks& group = kind.by_stage[violation.stage];
    if (group.empty()) kind.stages.push_back(violation.stage);
    group.push_back(&violation);
  }
  return kinds;
}

// Kinds that are told in one sentence. Where they break first, they do so to the same extent; of the further stages no
// extent is told. Tokens have a sentence of their own.
bool told_together(const Kind& a, const Kind& b) {
  if ((a.first->buffer == kTokens) != (b.first->buffer == kTokens)) return false;
  return a.first->op == b.first->op && a.stages == b.stages && same_extent(a.in_first_stage(), b.in_first_stage());
}

std::string ids_in_words(const std::vector<std::int32_t>& ids, std::size_t from) {
  std::string line;
  for (std::size_t i = from; i < ids.size(); ++i) {
    if (i > from) line += " ";
    if (i == from + kIdsShown) return line + "…";
    line += std::to_string(ids[i]);
  }
  return line.empty() ? "none" : line;
}

// Which tokens came out on either poison, from where they part; empty where they do not.
std::string tokens_on_poisons(const Tokens& tokens) {
  const auto step = first_difference(tokens.ids, tokens.poison_b_ids);
  if (!step) return {};
  const auto from = static_cast<std::size_t>(*step);
  const std::vector<std::int32_t> none;
  for (std::size_t request = 0;; ++request) {
    const auto& a = request < tokens.ids.size() ? tokens.ids[request] : none;
    const auto& b = request < tokens.poison_b_ids.size() ? tokens.poison_b_ids[request] : none;
    if (first_difference({a}, {b}) != step) continue;
    std::string line = "tokens";
    if (std::max(tokens.ids.size(), tokens.poison_b_ids.size()) > 1) line += " of request " + std::to_string(request);
    if (from > 0) line += " from step " + std::to_string(from) + " on";
    return line + ": " + ids_in_words(a, from) + "; on the other poison " + ids_in_words(b, from) +
           ": the output depends on memory that nobody wrote";
  }
}

std::string sentence_of(const std::vector<std::string>& buffers, const Kind& kind, const Result& result) {
  const Violation& first = *kind.first;
  if (result.tokens && first.buffer == kTokens && first.stage.empty() && first.reason == Reason::uninitialised_read)
    if (std::string line = tokens_on_poisons(*result.tokens); !line.empty()) return line;
  const std::string& stage = kind.stages.front();
  std::string line = first.op;
  if (!stage.empty()) line += (line.empty() ? "" : ", ") + stage;
  if (!line.empty()) line += ": ";
  // A stage's launch has rows of its own, of which the result knows nothing.
  const bool whole = stage.empty();
  line += sentence(buffers, kind.in_first_stage(), whole ? std::optional(result.token_rows) : std::nullopt);
  const std::vector<std::string> further(kind.stages.begin() + 1, kind.stages.end());
  if (!further.empty())
    line += "; and in " + text::count(static_cast<std::int64_t>(further.size()), "further stage") + " (" +
            stages_in_words(further) + ")";
  return line;
}

}  // namespace

std::vector<std::string> describe_violations(const Result& result) {
  const std::vector<Kind> kinds = kinds_of(result.verdict);
  std::vector<std::string> sentences;
  std::vector<bool> told(kinds.size(), false);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (told[i]) continue;
    std::vector<std::string> buffers;
    for (std::size_t j = i; j < kinds.size(); ++j) {
      if (told[j] || !told_together(kinds[i], kinds[j])) continue;
      told[j] = true;
      buffers.push_back(kinds[j].first->buffer);
    }
    sentences.push_back(sentence_of(buffers, kinds[i], result));
  }
  const Verdict& verdict = result.verdict;
  if (verdict.tainted > 0)
    sentences.push_back(text::count(verdict.tainted, "element") + " downstream " + (verdict.tainted == 1 ? "rests" : "rest") +
                        " on bytes that nobody wrote or that went astray, and " + (verdict.tainted == 1 ? "was" : "were") +
                        " not judged");
  if (verdict.left_out > 0)
    sentences.push_back(text::count(verdict.left_out, "element") + (verdict.left_out == 1 ? " was" : " were") +
                        " left out: the case has a sample of its rows judged");
  return sentences;
}

}  // namespace dcpcheck
