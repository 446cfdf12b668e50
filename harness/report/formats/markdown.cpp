// A summary for the page of a CI job: what was run and came of it, then whatever is not as expected, with the line that repeats
// it; the table of all results is folded away.
#include <string>
#include <vector>

#include "harness/report/format.hpp"
#include "harness/report/label.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck::formats {
namespace {

constexpr std::size_t kMostTold = 50;    // results that are told in full
constexpr std::size_t kMostRows = 2000;  // of the table: a page of a job may have a megabyte

// Text that Markdown and HTML have nothing to say about.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text::printable(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\\':
      case '`':
      case '*':
      case '_':
      case '[':
      case ']':
      case '|':
      case '~':
      case '#': out += '\\'; [[fallthrough]];
      default: out += c;
    }
  }
  return out;
}

// A line of code on lines of its own, whatever backticks it has.
std::string code(const std::string& line) {
  std::string fence = "```";
  while (line.find(fence) != std::string::npos) fence += "`";
  return fence + "\n" + text::printable(line) + "\n" + fence + "\n";
}

std::string headline(const Report& report) {
  const Summary summary = summarise(report);
  std::string line = std::string("## dcpcheck: ") + (summary.ok ? "as expected" : "not as expected") + "\n\n" +
                     text::count(summary.total, "result") + ": ";
  std::vector<std::string> parts;
  for (const Status status : kStatuses)
    if (summary.counts.at(status) > 0)
      parts.push_back(std::to_string(summary.counts.at(status)) + " " + std::string(name_of(status)));
  line += (parts.empty() ? "none" : text::list(parts)) + "; **" + std::to_string(summary.as_expected) + " as expected**";
  std::int64_t good = 0;
  for (const Relation& relation : report.relations) good += relation.as_expected() ? 1 : 0;
  if (!report.relations.empty())
    line += "; " + std::to_string(good) + " of " + text::count(std::ssize(report.relations), "relation") + " as expected";
  return line + ".\n\n" + plain(report.machine.device ? *report.machine.device : report.machine.cpu) + ", dcpcheck " +
         plain(report.tool.version) + " (" + plain(report.tool.revision) + ")\n";
}

bool is_skip(const Result& result) { return result.verdict.status == Status::skipped; }

std::string told(const Report& report) {
  std::string page;
  std::size_t count = 0, more = 0;
  for (const Result& result : report.results) {
    if (result.as_expected || is_skip(result)) continue;
    if (++count > kMostTold) {
      ++more;
      continue;
    }
    page += "\n### " + plain(case_label(result) + ", " + result.op + " " + kernel_label(result) + ", " + result.backend) +
            "\n\n" + plain(outcome_in_words(result)) + "\n\n";
    for (const std::string& reason : reasons_of(result)) page += "- " + plain(reason) + "\n";
    page += "\n" + code(result.replay);
  }
  if (more > 0) page += "\n" + std::to_string(more) + " more are in the table.\n";
  std::string relations;
  for (const Relation& relation : report.relations)
    if (!relation.as_expected()) relations += "- " + plain(relation_in_words(relation)) + "\n";
  if (!relations.empty()) page += "\n### Relations\n\n" + relations;
  return page;
}

std::string table(const Report& report) {
  if (report.results.empty()) return {};
  std::string page =
      "\n<details><summary>All results</summary>\n\n| Case | Op | Kernel | Status | Digest | |\n| --- | --- | --- | --- | --- "
      "| --- |\n";
  std::size_t rows = 0;
  for (const Result& result : report.results) {
    if (++rows > kMostRows) break;
    page += "| " + plain(case_label(result)) + " | " + plain(result.op) + " | " + plain(kernel_label(result)) + " | " +
            std::string(name_of(result.verdict.status)) + " | " + result.all_digest.substr(0, 8) + " | " +
            (result.as_expected ? "ok"
             : is_skip(result)  ? "--"
                                : "**!!**") +
            " |\n";
  }
  if (report.results.size() > kMostRows)
    page += "\n" + std::to_string(report.results.size() - kMostRows) + " more are left out here.\n";
  return page + "\n</details>\n";
}

std::string render_markdown(const Report& report) { return headline(report) + told(report) + table(report); }

}  // namespace

Format markdown() { return {"markdown", "Also write a summary in Markdown, as for the page of a CI job", render_markdown}; }

}  // namespace dcpcheck::formats
