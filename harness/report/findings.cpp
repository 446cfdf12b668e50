#include "harness/report/findings.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

constexpr std::size_t kRangesShown = 3;

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

std::string sentence(const std::vector<std::string>& buffers, const OverRanks& group, std::int64_t token_rows) {
  const Violation& first = *group.front();
  const std::vector<std::int64_t> ranks = ranks_of(group);
  const bool several = ranks.size() > 1;
  std::string line = text::list(buffers) + ": " + std::string(in_words(first.reason)) + " on " + ranks_in_words(ranks);
  const bool by_rows = first.token_rows > 0;
  if (by_rows) {
    line += ", " + spread(group, &Violation::token_rows) + " of ";
    line += first.rows > 0 ? text::count(first.rows, "row") : text::count(token_rows, "token row");
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

}  // namespace

std::vector<std::string> describe_violations(const Result& result) {
  // In the verdict's order: by the first violation of the kind.
  using Key = std::pair<std::string, Reason>;
  std::vector<Key> order;
  std::map<Key, OverRanks> kinds;
  for (const Violation& violation : result.verdict.violations) {
    const Key key{violation.buffer, violation.reason};
    OverRanks& kind = kinds[key];
    if (kind.empty()) order.push_back(key);
    kind.push_back(&violation);
  }
  std::vector<std::string> sentences;
  std::vector<bool> told(order.size(), false);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (told[i]) continue;
    const OverRanks& kind = kinds[order[i]];
    std::vector<std::string> buffers;
    for (std::size_t j = i; j < order.size(); ++j) {
      if (told[j] || !same_extent(kind, kinds[order[j]])) continue;
      told[j] = true;
      buffers.push_back(order[j].first);
    }
    sentences.push_back(sentence(buffers, kind, result.token_rows));
  }
  return sentences;
}

}  // namespace dcpcheck
