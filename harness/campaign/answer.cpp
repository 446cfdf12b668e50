#include "harness/campaign/answer.hpp"

#include <algorithm>
#include <utility>

#include "harness/campaign/words.hpp"
#include "harness/core/digest.hpp"
#include "harness/core/error.hpp"
#include "harness/core/reader.hpp"
#include "harness/report/report.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

// From the best to the worst; what was skipped says less than what passed, and is only the case's where nothing else is.
constexpr std::array kByWeight{Status::not_run, Status::skipped, Status::pass,  Status::inconclusive,
                               Status::flaky,   Status::fail,    Status::crash, Status::hang};

std::size_t weight(Status status) {
  return static_cast<std::size_t>(std::find(kByWeight.begin(), kByWeight.end(), status) - kByWeight.begin());
}

std::string text_or_none(const Reader& reader, std::string_view key) {
  const auto field = reader.find(key);
  return field ? field->string() : "";
}

void add(json::Object& object, const char* key, const std::string& text) {
  if (!text.empty()) object.emplace_back(key, text);
}

}  // namespace

std::string id_of(const Signature& signature) { return sha256_hex(json::canonical(to_json(signature))).substr(0, 16); }

bool is_told(Status status) { return status != Status::pass && status != Status::skipped; }

bool is_finding(Status status) {
  return status == Status::fail || status == Status::crash || status == Status::hang || status == Status::flaky;
}

Status status_of(const std::vector<Check>& checks) {
  Status worst = Status::not_run;
  for (const Check& check : checks)
    if (weight(check.status) > weight(worst)) worst = check.status;
  return worst;
}

Status status_named(const std::string& name, const std::string& source) {
  for (const Status status : kStatuses)
    if (name_of(status) == name) return status;
  throw InputError(source + ": there is no status '" + text::printable(name) + "'");
}

json::Value to_json(const Check& check) {
  json::Object object{{"law", check.law}, {"status", std::string(name_of(check.status))}};
  add(object, "outputs", check.all_digest);
  if (check.status == Status::pass) return object;
  add(object, "detail", check.detail);
  if (!is_told(check.status)) return object;
  add(object, "reason", check.reason);
  add(object, "buffer", check.buffer);
  if (!check.what.empty()) object.emplace_back("what", array_of(check.what));
  add(object, "inputs", check.inputs_digest);
  return object;
}

Check check_from_json(const json::Value& value, const std::string& source) {
  const Reader reader(value, source);
  reader.object({"law", "status", "detail", "reason", "buffer", "what", "inputs", "outputs"});
  Check check;
  check.law = reader.at("law").string();
  check.status = status_named(reader.at("status").string(), source);
  check.detail = text_or_none(reader, "detail");
  check.reason = text_or_none(reader, "reason");
  check.buffer = text_or_none(reader, "buffer");
  if (const auto what = reader.find("what")) check.what = words_of(*what);
  check.inputs_digest = text_or_none(reader, "inputs");
  check.all_digest = text_or_none(reader, "outputs");
  return check;
}

json::Value to_json(const Signature& signature) {
  return json::Object{{"op", signature.op},
                      {"kernel", signature.kernel},
                      {"law", signature.law},
                      {"reason", signature.reason},
                      {"buffer", signature.buffer}};
}

Signature signature_from_json(const json::Value& value, const std::string& source) {
  const Reader reader(value, source);
  reader.object({"op", "kernel", "law", "reason", "buffer"});
  return {reader.at("op").string(), reader.at("kernel").string(), reader.at("law").string(), reader.at("reason").string(),
          reader.at("buffer").string()};
}

}  // namespace dcpcheck
