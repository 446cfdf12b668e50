#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "harness/campaign/finding.hpp"
#include "harness/commands/cases.hpp"
#include "harness/commands/context.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/verb.hpp"
#include "harness/core/error.hpp"
#include "harness/report/output.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck::verbs {
namespace {

namespace fs = std::filesystem;

void make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw InputError(text::printable(folder) + ": " + error.message());
}

std::string fault_of(const std::string& kernel) {
  const std::size_t at = kernel.rfind('@');
  return kernel.starts_with("builtin:") && at != std::string::npos ? kernel.substr(at + 1) : "";
}

// A finding as a case that stays: what of it was the campaign's is left out; of a known-wrong kernel, what it comes to is
// expected.
json::Value as_regression(const Context& context, const Finding& finding, const std::string& name, const std::string& source) {
  json::Object file{{"schema", "dcpcheck.case/1"}, {"name", name}, {"source", source}};
  const std::string fault = fault_of(finding.signature.kernel);
  if (!fault.empty() && finding.signature.law.empty() && finding.check.status == Status::fail) {
    json::Object expected{{"status", "fail"}, {"reasons", json::Array{finding.check.reason}}};
    file.emplace_back("expect", json::Object{{fault, std::move(expected)}});
  }
  file.emplace_back("case", case_to_json(context.ops.at(finding.value.op), finding.value));
  return file;
}

int add(const Arguments& arguments, Context& context) {
  const std::string folder = arguments.text("--to", "corpora/regressions");
  if (arguments.operands.size() < 2) throw InputError("corpus add needs the file of a finding");
  if (arguments.operands.size() > 2 && arguments.has("--name"))
    throw InputError("--name is for one finding, and " + std::to_string(arguments.operands.size() - 1) + " were given");
  std::vector<std::pair<Finding, std::string>> findings;  // all are read before any is moved
  for (std::size_t i = 1; i < arguments.operands.size(); ++i) {
    const std::string& path = arguments.operands[i];
    const json::Value document = json::parse(json::text_of(path), path);
    if (!has_finding(document)) throw InputError(path + ": it is a case, but no finding of a campaign");
    findings.emplace_back(finding_from_json(context.ops, document, path), path);
  }
  make_folder(folder);
  for (const auto& [finding, path] : findings) {
    const std::string name = arguments.text("--name", "finding-" + finding.id);
    const std::string target = (fs::path(folder) / (name + ".json")).string();
    std::error_code error;
    if (fs::exists(target, error)) throw InputError(text::printable(target) + " is there already: --name gives another name");
    const std::string source = arguments.text(
        "--source", "dcpcheck fuzz: " + finding.of + ", " + finding.signature.kernel + ", " + finding.signature.reason);
    ReportFile(target).write(json::dump(as_regression(context, finding, name, source), 2) + "\n");
    if (::unlink(path.c_str()) != 0)
      throw HarnessError(path + " was copied to " + target + ", but cannot be removed: " + std::strerror(errno));
    *context.out << text::printable(target) << "\n";
  }
  return 0;
}

// Of findings one a signature, that of the least number; of other cases one an id. What fails is never left out for what is
// only stored: a finding's file and a case's have names of their own.
int merge(const Arguments& arguments, Context& context) {
  const std::string out = arguments.text("--out");
  if (out.empty()) throw InputError("corpus merge needs --out DIR");
  struct Kept {
    std::string path, text, relative;
    std::uint64_t number = 0;
  };
  std::map<std::string, Kept> kept;
  std::int64_t files = 0;
  for (std::size_t i = 1; i < arguments.operands.size(); ++i) {
    std::error_code error;
    // Of a campaign's folder, what it found.
    const std::string& given = arguments.operands[i];
    const std::string folder = fs::exists(fs::path(given) / "journal", error) ? (fs::path(given) / "findings").string() : given;
    if (fs::equivalent(folder, out, error))
      throw InputError("--out " + text::printable(out) + " is a corpus that is to be merged");
    for (const NamedCase& named : load_cases(context, {folder}, {{}, std::int64_t{1} << 40})) {
      ++files;
      Kept one{named.reference, json::text_of(named.reference), fs::relative(named.reference, folder, error).string(), 0};
      if (one.relative.empty() || one.relative == ".") one.relative = fs::path(named.reference).filename().string();
      const json::Value document = json::parse(one.text, named.reference);
      std::string key = "case " + named.id;
      if (has_finding(document)) {
        const Finding finding = finding_from_json(context.ops, document, named.reference);
        key = "finding " + finding.id;
        one.number = finding.number;
        one.relative = "findings/" + finding.id + ".json";
      }
      const auto [at, added] = kept.emplace(key, one);
      if (!added && one.number < at->second.number) at->second = std::move(one);
    }
  }
  std::map<std::string, std::string> by_name;
  for (auto& [key, one] : kept) {
    // Two cases of one name are both kept.
    std::string name = one.relative;
    if (const auto same = by_name.find(name); same != by_name.end() && same->second != one.text)
      name = (fs::path(name).parent_path() / (fs::path(name).stem().string() + "-" + key.substr(key.find(' ') + 1) + ".json"))
                 .string();
    by_name.emplace(name, one.text);
    const fs::path target = fs::path(out) / name;
    make_folder(target.parent_path().string());
    ReportFile(target.string()).write(one.text);
  }
  *context.out << files << " files, " << kept.size() << " kept in " << text::printable(out) << "\n";
  return 0;
}

int run_corpus(const Arguments& arguments, Context& context) {
  const std::string& what = arguments.operands.front();
  if (what == "add") return add(arguments, context);
  if (what == "merge") return merge(arguments, context);
  throw InputError("corpus add FILE..., or corpus merge DIR...: there is no corpus " + text::printable(what));
}

}  // namespace

Verb corpus() {
  return {"corpus",
          "Move a finding into the corpus, or make one corpus of several",
          "corpus add FILE... moves findings into corpora/regressions (--to), without what was the campaign's. corpus merge "
          "DIR... puts "
          "cases and findings together into --out: one a finding and one a case.",
          {"add|merge", "what to do, then a finding's files, or folders", true, true},
          {{"--to", "DIR", "add: where to; default corpora/regressions", false},
           {"--name", "NAME", "add: the case's name; default finding-<id>", false},
           {"--source", "TEXT", "add: where it was seen", false},
           {"--out", "DIR", "merge: where to", false},
           ops_option()},
          run_corpus};
}

}  // namespace dcpcheck::verbs
