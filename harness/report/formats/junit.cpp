// JUnit's XML, as CI systems read it: testsuites / testsuite / testcase, with failure, error or skipped. The description that
// is written to is reports/schema/junit.xsd. There is no timestamp in it, so that a report is a function of the run.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/json.hpp"
#include "harness/report/format.hpp"
#include "harness/report/label.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck::formats {
namespace {

// As the value of an attribute; with `text_content`, between tags, where lines end as they do. What XML 1.0 has no way to write
// stands as U+FFFD.
std::string escaped(const std::string& raw, bool text_content = false) {
  // The door to JSON replaces what is not UTF-8; its quotes and escapes are not wanted.
  const json::Value read = json::parse(json::dump(json::Array{raw}), "text", {std::size_t{1} << 26, 4});
  const std::string text = *read.get<json::Array>()->front().get<std::string>();
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\n': out += text_content ? "\n" : "&#10;"; break;
      case '\t': out += "&#9;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? std::string("\xEF\xBF\xBD") : std::string(1, c);
    }
  }
  // U+FFFE and U+FFFF are UTF-8, and no characters of XML.
  for (const char* const none : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"})
    for (std::size_t at = out.find(none); at != std::string::npos; at = out.find(none, at)) out.replace(at, 3, "\xEF\xBF\xBD");
  return out;
}

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + escaped(value) + "\"";
}

std::string seconds_text(double seconds) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.3f", seconds);
  return text.data();
}

// What a CI system is to make of a test.
enum class Kind { passed, failed, broken, skipped };

Kind kind_of(const Result& result) {
  if (result.as_expected) return Kind::passed;
  switch (result.verdict.status) {
    case Status::skipped:
    case Status::inconclusive: return Kind::skipped;  // no answer: neither right nor wrong
    case Status::crash:
    case Status::hang:
    case Status::not_run: return Kind::broken;
    default: return Kind::failed;
  }
}

struct Test {
  std::string name, classname, message, type, details, out;
  Kind kind = Kind::passed;
  double seconds = 0;
};

Test test_of(const Result& result) {
  Test test;
  // A name tells one test from all others of its class, from night to night.
  test.name = case_label(result) + (result.law.empty() ? "" : ", " + result.law) + ", " + result.backend;
  test.classname = "dcpcheck." + result.op + "." + kernel_label(result);
  test.kind = kind_of(result);
  test.seconds = result.seconds;
  test.message = outcome_in_words(result);
  test.type = name_of(result.verdict.reason);
  for (const std::string& reason : reasons_of(result)) test.details += reason + "\n";
  if (test.kind == Kind::skipped && !result.verdict.detail.empty()) test.message = text::printable(result.verdict.detail);
  test.out = "case " + result.id + "\n" + result.replay + "\n";
  if (result.as_expected && result.verdict.status != Status::pass) test.out += outcome_in_words(result) + "\n" + test.details;
  return test;
}

Test test_of(const Relation& relation) {
  Test test;
  test.name = relation.scenario + ", " + relation.quantity + ", DCP1 and DCP4, " + relation.backend;
  test.classname = "dcpcheck.relations." + (relation.fault.empty() ? "fixed" : relation.fault);
  test.message = relation_in_words(relation);
  test.type = relation.inconclusive_at ? "inconclusive" : "relation";
  test.kind = relation.as_expected() ? Kind::passed : Kind::failed;
  return test;
}

std::string xml(const Test& test) {
  std::string text = "    <testcase" + attribute("name", test.name) + attribute("classname", test.classname) +
                     attribute("time", seconds_text(test.seconds)) + ">\n";
  const std::string message = attribute("message", test.message), type = attribute("type", test.type);
  switch (test.kind) {
    case Kind::passed: break;
    case Kind::skipped: text += "      <skipped" + message + "/>\n"; break;
    case Kind::failed: text += "      <failure" + message + type + ">" + escaped(test.details, true) + "</failure>\n"; break;
    case Kind::broken: text += "      <error" + message + type + ">" + escaped(test.details, true) + "</error>\n"; break;
  }
  if (!test.out.empty()) text += "      <system-out>" + escaped(test.out, true) + "</system-out>\n";
  return text + "    </testcase>\n";
}

std::string counts(const std::vector<const Test*>& tests) {
  const auto of = [&](Kind kind) {
    return std::to_string(std::count_if(tests.begin(), tests.end(), [&](const Test* test) { return test->kind == kind; }));
  };
  double seconds = 0;
  for (const Test* test : tests) seconds += test->seconds;
  return attribute("tests", std::to_string(tests.size())) + attribute("failures", of(Kind::failed)) +
         attribute("errors", of(Kind::broken)) + attribute("skipped", of(Kind::skipped)) +
         attribute("time", seconds_text(seconds));
}

std::string property(const char* name, const std::string& value) {
  return "      <property" + attribute("name", name) + attribute("value", value) + "/>\n";
}

std::string render_junit(const Report& report) {
  std::vector<std::pair<std::string, std::vector<Test>>> suites;  // in the order of the report
  const auto add = [&](const std::string& suite, Test test) {
    auto found = std::find_if(suites.begin(), suites.end(), [&](const auto& one) { return one.first == suite; });
    if (found == suites.end()) found = suites.insert(suites.end(), {suite, {}});
    found->second.push_back(std::move(test));
  };
  for (const Result& result : report.results) add(result.op, test_of(result));
  for (const Relation& relation : report.relations) add("relations", test_of(relation));
  std::vector<const Test*> all;
  for (const auto& [name, tests] : suites)
    for (const Test& test : tests) all.push_back(&test);
  std::string properties = "    <properties>\n" + property("version", report.tool.version) +
                           property("revision", report.tool.revision) + property("os", report.machine.os) +
                           property("cpu", report.machine.cpu);
  if (report.machine.device) properties += property("device", *report.machine.device);
  if (report.machine.driver) properties += property("driver", *report.machine.driver);
  properties += "    </properties>\n";
  std::string text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + attribute("name", "dcpcheck") + counts(all) + ">\n";
  for (const auto& [name, tests] : suites) {
    std::vector<const Test*> own;
    for (const Test& test : tests) own.push_back(&test);
    text += "  <testsuite" + attribute("name", name) + counts(own) + ">\n" + properties;
    for (const Test& test : tests) text += xml(test);
    text += "  </testsuite>\n";
  }
  return text + "</testsuites>\n";
}

}  // namespace

Format junit() { return {"junit", "Also write the results as JUnit's XML, which CI systems read", render_junit}; }

}  // namespace dcpcheck::formats
