#include "harness/campaign/finding.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <utility>

#include "harness/campaign/words.hpp"
#include "harness/core/error.hpp"
#include "harness/core/reader.hpp"
#include "harness/report/output.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

bool is_date(const std::string& text) {
  constexpr std::string_view kForm = "dddd-dd-dd";
  const bool formed = text.size() == kForm.size() && std::equal(text.begin(), text.end(), kForm.begin(), [](char c, char form) {
                        return form == 'd' ? std::isdigit(static_cast<unsigned char>(c)) != 0 : c == form;
                      });
  if (!formed) return false;
  const std::chrono::year_month_day day{std::chrono::year(std::stoi(text)),
                                        std::chrono::month(static_cast<unsigned>(std::stoi(text.substr(5)))),
                                        std::chrono::day(static_cast<unsigned>(std::stoi(text.substr(8))))};
  return day.ok();  // no 30th of February
}

}  // namespace

json::Value to_json(const Ops& ops, const Finding& finding) {
  const Op& op = ops.at(finding.value.op);
  json::Object reruns;
  for (const auto& [status, count] : finding.reruns) reruns.emplace_back(status, static_cast<std::int64_t>(count));
  json::Object found{{"id", finding.id},
                     {"signature", to_json(finding.signature)},
                     {"check", to_json(finding.check)},
                     {"number", static_cast<std::int64_t>(finding.number)},
                     {"of", finding.of},
                     {"seed", hex_of(finding.seed)},
                     {"backend", finding.backend},
                     {"reruns", std::move(reruns)},
                     {"evaluations", finding.evaluations},
                     {"stopped", finding.stopped},
                     {"shrunk_from", json::Object{{"id", case_id(op, finding.from)}, {"case", case_to_json(op, finding.from)}}},
                     {"replay", array_of(finding.replay)}};
  return json::Object{
      {"schema", "dcpcheck.case/1"},
      {"name", "finding-" + finding.id},
      {"source", "found in " + finding.of + ": " + finding.signature.kernel + ", " +
                     (finding.signature.law.empty() ? "" : finding.signature.law + ": ") + finding.signature.reason},
      {"case", case_to_json(op, finding.value)},
      {"finding", std::move(found)}};
}

bool has_finding(const json::Value& document) { return document.find("finding") != nullptr; }

Finding finding_from_json(const Ops& ops, const json::Value& document, const std::string& source) {
  const Reader reader(document, source);
  reader.object({"schema", "name", "source", "expect", "case", "finding"});
  reader.at("schema").one_of({"dcpcheck.case/1"});
  const Reader found = reader.at("finding");
  found.object({"id", "signature", "check", "number", "of", "seed", "backend", "reruns", "evaluations", "stopped",
                "shrunk_from", "replay"});
  Finding finding;
  finding.id = found.at("id").string();
  finding.signature = signature_from_json(found.at("signature").value(), source);
  if (finding.id != id_of(finding.signature)) found.at("id").fail("it is that of the signature, " + id_of(finding.signature));
  finding.check = check_from_json(found.at("check").value(), source);
  finding.number = static_cast<std::uint64_t>(found.at("number").count());
  finding.of = found.at("of").string();
  finding.seed = std::stoull("0" + found.at("seed").string(), nullptr, 16);
  finding.backend = found.at("backend").string();
  for (const auto& [status, count] : found.at("reruns").members())
    finding.reruns[status] = static_cast<int>(count.integer(0, 1000));
  finding.evaluations = found.at("evaluations").count();
  finding.stopped = found.at("stopped").string();
  finding.value = case_from_json(ops, reader.at("case").value(), source, "/case");
  finding.from = case_from_json(ops, found.at("shrunk_from").at("case").value(), source, "/finding/shrunk_from/case");
  finding.replay = words_of(found.at("replay"));
  return finding;
}

std::vector<std::string> replay_of(std::vector<std::string> words, const Signature& signature) {
  words.insert(words.end(), {"--kernel", signature.kernel});
  if (!signature.law.empty()) words.insert(words.end(), {"--law", signature.law});
  return words;
}

std::string replay_line(const Finding& finding, const std::string& path) {
  std::string line;
  for (const std::string& word : finding.replay) line += text::shell_quote(word) + " ";
  return line + text::shell_quote(path);
}

std::string path_of(const std::string& folder, const std::string& id) {
  return (std::filesystem::path(folder) / (id + ".json")).string();
}

void write_finding(const Ops& ops, const std::string& folder, const Finding& finding) {
  ReportFile(path_of(folder, finding.id)).write(json::dump(to_json(ops, finding), 1) + "\n");
}

std::vector<Known> load_known(const std::string& path) {
  const std::string source = text::printable(path);
  const json::Value document = json::parse(json::text_of(path), source);
  std::vector<Known> list;
  for (const Reader& entry : Reader(document, source).elements()) {
    entry.object({"op", "kernel", "law", "reason", "buffer", "issue", "expires"});
    Known known;
    for (const char* field : {"op", "kernel", "law", "reason", "buffer"})
      if (const auto value = entry.find(field)) known.fields[field] = value->string();
    if (known.fields.empty()) entry.fail("an entry says at least one of op, kernel, law, reason and buffer");
    known.issue = entry.at("issue").string();
    if (known.issue.find_first_not_of(' ') == std::string::npos)
      entry.at("issue").fail("it is where the finding is being dealt with");
    known.expires = entry.at("expires").string();
    if (!is_date(known.expires)) entry.at("expires").fail("it is a date, as 2027-01-31");
    list.push_back(std::move(known));
  }
  return list;
}

const Known* known_as(const std::vector<Known>& list, const Signature& signature) {
  const std::array<std::pair<const char*, const std::string*>, 5> fields{{{"op", &signature.op},
                                                                          {"kernel", &signature.kernel},
                                                                          {"law", &signature.law},
                                                                          {"reason", &signature.reason},
                                                                          {"buffer", &signature.buffer}}};
  for (const Known& known : list) {
    if (std::all_of(fields.begin(), fields.end(), [&](const auto& field) {
          const auto wanted = known.fields.find(field.first);
          return wanted == known.fields.end() || wanted->second == *field.second;
        }))
      return &known;
  }
  return nullptr;
}

bool has_expired(const Known& known, const std::string& today) { return known.expires < today; }

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  std::array<char, 16> text{};
  if (::gmtime_r(&now, &parts) == nullptr || std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts) == 0)
    throw HarnessError("the clock's time is no date");
  return text.data();
}

}  // namespace dcpcheck
