#include "harness/report/annotations.hpp"

#include "harness/report/label.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

constexpr int kMost = 10;

// A command is a line, and in its properties a comma or a colon ends a value.
std::string escaped(const std::string& text, bool property) {
  std::string out;
  for (const char c : text) {
    if (c == '%') {
      out += "%25";
    } else if (c == '\r') {
      out += "%0D";
    } else if (c == '\n') {
      out += "%0A";
    } else if (property && c == ':') {
      out += "%3A";
    } else if (property && c == ',') {
      out += "%2C";
    } else {
      out += c;
    }
  }
  return out;
}

class Lines {
 public:
  void add(bool error, const std::string& title, const std::string& message) {
    int& count = error ? errors_ : warnings_;
    if (++count > kMost) return;
    text_ +=
        std::string(error ? "::error" : "::warning") + " title=" + escaped(title, true) + "::" + escaped(message, false) + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  int errors_ = 0, warnings_ = 0;
  std::string text_;
};

}  // namespace

std::string annotations(const Report& report) {
  Lines lines;
  for (const Result& result : report.results) {
    if (result.as_expected || result.verdict.status == Status::skipped) continue;
    std::string message = outcome_in_words(result);
    for (const std::string& reason : reasons_of(result)) message += "\n" + reason;
    lines.add(result.verdict.status != Status::inconclusive, case_label(result) + ", " + result.op + " " + kernel_label(result),
              message + "\n" + text::printable(result.replay));
  }
  for (const Relation& relation : report.relations)
    if (!relation.as_expected())
      lines.add(true, text::printable(relation.scenario) + ", " + relation.quantity,
                text::printable(relation_in_words(relation)));
  return lines.text();
}

}  // namespace dcpcheck
