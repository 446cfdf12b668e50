#include "harness/report/console.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/report/label.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

constexpr std::string_view kNothing = "-";

// A cell or a line in a colour of its meaning, where colours are wanted.
class Painter {
 public:
  explicit Painter(ConsoleStyle style) : style_(style) {}
  std::string good(const std::string& text) const { return paint(text, "32"); }
  std::string bad(const std::string& text) const { return paint(text, "31"); }
  std::string weak(const std::string& text) const { return paint(text, "2"); }
  std::string strong(const std::string& text) const { return paint(text, "1"); }

 private:
  std::string paint(const std::string& text, const char* code) const {
    return style_.colour ? "\x1b[" + std::string(code) + "m" + text + "\x1b[0m" : text;
  }
  ConsoleStyle style_;
};

std::string short_hash(const std::string& digest) { return digest.empty() ? std::string(kNothing) : digest.substr(0, 8); }

std::string contract_in_words(const Result& result) {
  std::vector<std::string> words;
  for (const auto& [option, value] : result.contract) words.push_back(option + " " + value);
  return text::list(words);
}

// Cells of fixed width, one space between them; trailing spaces are dropped.
std::string row(const std::vector<std::pair<std::string, int>>& cells) {
  std::string line;
  for (const auto& [cell, columns] : cells) line += (line.empty() ? "" : " ") + text::fit(cell, columns);
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string mark(bool as_expected, bool skipped = false) { return as_expected ? "ok" : skipped ? "--" : "!!"; }

// Colours a whole line by whether it is as expected, and whether there is anything to see in it.
std::string line_of(const Painter& paint, const std::string& line, bool as_expected) {
  return (as_expected ? line : paint.bad(line)) + "\n";
}

// One line of the paired table.
struct Pair {
  std::string scenario, op, kernel, fault, backend;
  const Result* dcp1 = nullptr;
  const Result* dcp4 = nullptr;
  const Relation* relation = nullptr;
};

// Whether the report says so, and each result has a cell of its own: then none can hide another.
bool comes_in_pairs(const Report& report) {
  std::set<std::tuple<std::string, std::string, std::string, std::string, std::int64_t>> cells;
  for (const Result& result : report.results) {
    const ScenarioName name = scenario_of(result.name);
    const bool known = name.world_size == result.world_size && (result.world_size == 1 || result.world_size == 4);
    if (!known || !cells.emplace(name.scenario, result.op, result.kernel, result.backend, result.world_size).second)
      return false;
  }
  return report.paired;
}

// What is compared between the runs of a pair: their tokens where they have any.
bool compares(const Relation& relation, const Pair& pair) {
  const auto has_tokens = [](const Result* result) { return result != nullptr && result->tokens; };
  const bool tokens = has_tokens(pair.dcp1) || has_tokens(pair.dcp4);
  return relation.scenario == pair.scenario && relation.fault == pair.fault && relation.backend == pair.backend &&
         (relation.quantity == kTokens) == tokens;
}

std::vector<Pair> pairs_of(const Report& report) {
  std::vector<Pair> pairs;
  for (const Result& result : report.results) {
    const ScenarioName name = scenario_of(result.name);
    const auto same = [&](const Pair& pair) {
      return pair.scenario == name.scenario && pair.op == result.op && pair.kernel == result.kernel &&
             pair.backend == result.backend;
    };
    auto found = std::find_if(pairs.begin(), pairs.end(), same);
    if (found == pairs.end())
      found =
          pairs.insert(pairs.end(), Pair{name.scenario, result.op, result.kernel, result.fault, result.backend, {}, {}, {}});
    (name.world_size == 1 ? found->dcp1 : found->dcp4) = &result;
  }
  for (Pair& pair : pairs) {
    for (const Relation& relation : report.relations)
      if (compares(relation, pair)) pair.relation = &relation;
  }
  return pairs;
}

// "K rows 1a2b3c4d = 1a2b3c4d"; "≠" and the first rank's that differs; "?" where right runs may differ too.
std::string relation_cell(const Relation* relation) {
  if (relation == nullptr) return std::string(kNothing);
  std::string other = relation->dcp1;
  for (const std::string& digest : relation->dcp4) {
    if (digest == relation->dcp1) continue;
    other = digest;
    break;
  }
  const std::string sign = relation->equal ? " = " : relation->inconclusive_at ? " ? " : " ≠ ";
  return (relation->quantity == kKRows ? "K rows" : relation->quantity) + " " + short_hash(relation->dcp1) + sign +
         short_hash(other);
}

std::string status_cell(const Result* result) {
  return std::string(result == nullptr ? kNothing : name_of(result->verdict.status));
}

std::string paired_table(const Report& report, const Painter& paint) {
  const auto cells = [](std::string a, std::string b, std::string c, std::string d, std::string e, std::string f) {
    return row(
        {{std::move(a), 16}, {std::move(b), 15}, {std::move(c), 8}, {std::move(d), 8}, {std::move(e), 26}, {std::move(f), 2}});
  };
  std::string table = paint.strong(cells("Scenario", "Kernel", "DCP1", "DCP4", "Compared: DCP1, DCP4", "")) + "\n";
  for (const Pair& pair : pairs_of(report)) {
    const bool good = (pair.dcp1 == nullptr || pair.dcp1->as_expected) && (pair.dcp4 == nullptr || pair.dcp4->as_expected) &&
                      (pair.relation == nullptr || pair.relation->as_expected());
    table += line_of(paint,
                     cells(text::printable(pair.scenario), pair.fault.empty() ? "fixed" : text::printable(pair.fault),
                           status_cell(pair.dcp1), status_cell(pair.dcp4), relation_cell(pair.relation), mark(good)),
                     good);
  }
  return table;
}

// "0.43", ">999" or "-": the worst error as a fraction of its bound.
std::string fraction_cell(const Verdict& verdict) {
  if (verdict.worst.buffer.empty()) return std::string(kNothing);
  if (!(verdict.worst.fraction < 1000)) return ">999";
  const std::int64_t hundredths = std::llround(verdict.worst.fraction * 100);
  const std::string digits = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + "." + (digits.size() == 1 ? "0" : "") + digits;
}

std::string plain_table(const Report& report, const Painter& paint) {
  const auto cells = [](std::string a, std::string b, std::string c, std::string d, std::string e, std::string f) {
    return row(
        {{std::move(a), 32}, {std::move(b), 15}, {std::move(c), 12}, {std::move(d), 8}, {std::move(e), 6}, {std::move(f), 2}});
  };
  std::string table = paint.strong(cells("Case", "Kernel", "Status", "Digest", "Worst", "")) + "\n";
  for (const Result& result : report.results) {
    const bool skipped = result.verdict.status == Status::skipped;
    table += line_of(paint,
                     cells(case_label(result), kernel_label(result), std::string(name_of(result.verdict.status)),
                           short_hash(result.all_digest), fraction_cell(result.verdict), mark(result.as_expected, skipped)),
                     result.as_expected || skipped);
  }
  return table;
}

// Of laws, which have no digests.
std::string law_table(const Report& report, const Painter& paint) {
  const auto cells = [](std::string a, std::string b, std::string c, std::string d, std::string e) {
    return row({{std::move(a), 30}, {std::move(b), 15}, {std::move(c), 21}, {std::move(d), 7}, {std::move(e), 2}});
  };
  std::string table = paint.strong(cells("Case", "Kernel", "Law", "Status", "")) + "\n";
  for (const Result& result : report.results) {
    const bool skipped = result.verdict.status == Status::skipped;
    table += line_of(paint,
                     cells(case_label(result), kernel_label(result), result.law.empty() ? std::string(kNothing) : result.law,
                           std::string(name_of(result.verdict.status)), mark(result.as_expected, skipped)),
                     result.as_expected || skipped);
  }
  return table;
}

// Nothing more to say of it than the table does.
bool is_plain_pass(const Result& result) { return result.verdict.status == Status::pass && result.as_expected; }

// What a person needs to know of a result that is broken or a surprise; empty for a plain pass.
std::string paragraph(const Result& result, const Painter& paint) {
  if (is_plain_pass(result)) return {};
  std::string head = case_label(result) + ", " + result.op + " " + kernel_label(result) + ", " + result.backend + ": " +
                     outcome_in_words(result);
  head = text::wrap(head, text::kColumns, 2);
  head.pop_back();
  std::string body;
  for (const std::string& reason : reasons_of(result)) body += text::wrap("  " + reason, text::kColumns, 4);
  // Ours follow whatever the case has.
  if (is_from_elsewhere(result) && !result.contract.empty())
    body += text::wrap("  Contract options: " + contract_in_words(result), text::kColumns, 4);
  return "\n" + (result.as_expected ? paint.strong(head) : paint.bad(head)) + "\n" + body;
}

// What the passes that have no paragraph did not judge, a line for each case and number: a pass vouches for no more than
// was looked at.
std::string left_out_lines(const Report& report) {
  std::vector<std::pair<const Result*, std::vector<std::string>>> told;
  for (const Result& result : report.results) {
    if (!is_plain_pass(result) || result.verdict.left_out == 0) continue;
    auto found = std::find_if(told.begin(), told.end(), [&](const auto& entry) {
      const Result& other = *entry.first;
      return other.case_reference == result.case_reference && other.name == result.name && other.backend == result.backend &&
             other.verdict.left_out == result.verdict.left_out;
    });
    if (found == told.end()) found = told.insert(told.end(), {&result, {}});
    found->second.push_back(kernel_label(result));
  }
  if (told.empty()) return {};
  std::string lines = "\nLeft out, because these cases have a sample of their rows judged:\n";
  for (const auto& [result, kernels] : told)
    lines += text::wrap(
        "  " + case_label(*result) + ", " + text::list(kernels) + ": " + text::count(result->verdict.left_out, "element"),
        text::kColumns, 4);
  return lines;
}

std::string count_line(const Report& report, const Painter& paint) {
  const Summary summary = summarise(report);
  std::string line = text::count(summary.total, "result") + ": ";
  bool first = true;
  for (const Status status : kStatuses) {
    if (summary.counts.at(status) == 0) continue;
    line += (first ? "" : ", ") + std::to_string(summary.counts.at(status)) + " " + std::string(name_of(status));
    first = false;
  }
  if (first) line += "none";
  line += "; " + std::to_string(summary.as_expected) + " as expected";
  const auto wrong = std::count_if(report.relations.begin(), report.relations.end(),
                                   [](const Relation& relation) { return !relation.as_expected(); });
  if (!report.relations.empty())
    line += "; " + std::to_string(static_cast<std::int64_t>(report.relations.size()) - wrong) + " of " +
            text::count(static_cast<std::int64_t>(report.relations.size()), "relation") + " as expected";
  const auto open = std::count_if(report.relations.begin(), report.relations.end(),
                                  [](const Relation& relation) { return relation.inconclusive_at.has_value(); });
  if (open > 0) line += ", " + std::to_string(open) + " inconclusive";
  line = text::wrap(line, text::kColumns);
  line.pop_back();
  return "\n" + (summary.ok ? paint.good(line) : paint.bad(line)) + "\n";
}

}  // namespace

ScenarioName scenario_of(const std::string& name) {
  const std::size_t at = name.rfind("-dcp");
  ScenarioName parts{name, 0};
  if (at == std::string::npos) return parts;
  const char* begin = name.data() + at + 4;
  const char* end = name.data() + name.size();
  std::int64_t world_size = 0;
  const auto [stop, error] = std::from_chars(begin, end, world_size);
  if (error == std::errc{} && stop == end && world_size > 0) parts = {name.substr(0, at), world_size};
  return parts;
}

std::string render_console(const Report& report, ConsoleStyle style) {
  const Painter paint(style);
  if (report.results.empty()) return "no result\n";
  const bool of_laws =
      std::any_of(report.results.begin(), report.results.end(), [](const Result& r) { return !r.law.empty(); });
  std::string page = comes_in_pairs(report) ? paired_table(report, paint)
                     : of_laws              ? law_table(report, paint)
                                            : plain_table(report, paint);
  page += left_out_lines(report);
  for (const Result& result : report.results) page += paragraph(result, paint);
  for (const Relation& relation : report.relations)
    if (!relation.as_expected()) page += "\n" + text::wrap(text::printable(relation_in_words(relation)), text::kColumns, 2);
  return page + count_line(report, paint);
}

}  // namespace dcpcheck
