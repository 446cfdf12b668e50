#include "harness/core/reader.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "harness/core/error.hpp"

namespace dcpcheck {

void Reader::fail(const std::string& rule) const {
  throw InputError(source_ + ": " + (pointer_.empty() ? "the document" : pointer_) + " is " + value_->describe() + ", but " +
                   rule);
}

Reader Reader::child(const json::Value& value, std::string_view key) const {
  std::string pointer = pointer_ + "/";
  for (const char c : key) {  // RFC 6901
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
  return Reader(value, source_, pointer);
}

void Reader::object(const std::vector<std::string>& known) const {
  for (const auto& [name, member] : members()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = nearest_name(name, known);
    throw InputError(source_ + ": " + member.pointer() + " is not known here" +
                     (near.empty() ? known.empty() ? std::string(": there are no fields") : "; the fields are " + list_of(known)
                                   : "; did you mean \"" + near + "\"?"));
  }
}

std::vector<std::pair<std::string, Reader>> Reader::members() const {
  const auto* object = value_->get<json::Object>();
  if (!object) fail("an object is needed");
  std::vector<std::pair<std::string, Reader>> out;
  for (const json::Member& member : *object) out.emplace_back(member.first, child(member.second, member.first));
  return out;
}

std::vector<Reader> Reader::elements() const {
  const auto* array = value_->get<json::Array>();
  if (!array) fail("an array is needed");
  std::vector<Reader> out;
  for (std::size_t i = 0; i < array->size(); ++i) out.push_back(child((*array)[i], std::to_string(i)));
  return out;
}

std::optional<Reader> Reader::find(std::string_view key) const {
  const json::Value* found = value_->find(key);
  if (!found) return std::nullopt;
  return child(*found, key);
}

Reader Reader::at(std::string_view key) const {
  if (auto found = find(key)) return *found;
  if (!value_->get<json::Object>()) fail("an object is needed");
  throw InputError(source_ + ": " + (pointer_.empty() ? "the document" : pointer_) + " has no \"" + std::string(key) + "\"");
}

bool Reader::boolean() const {
  if (const bool* flag = value_->get<bool>()) return *flag;
  fail("true or false is needed");
}

std::int64_t Reader::integer(std::int64_t min, std::int64_t max) const {
  const auto* number = value_->get<std::int64_t>();
  if (!number || *number < min || *number > max) {
    fail("an integer from " + std::to_string(min) + " to " + std::to_string(max) + " is needed");
  }
  return *number;
}

std::int64_t Reader::count() const { return integer(0, std::numeric_limits<std::int64_t>::max()); }

double Reader::number() const {
  if (const auto* number = value_->get<double>()) return *number;
  if (const auto* number = value_->get<std::int64_t>()) return static_cast<double>(*number);
  fail("a number is needed");
}

std::string Reader::string() const {
  if (const auto* text = value_->get<std::string>()) return *text;
  fail("a string is needed");
}

std::string Reader::one_of(const std::vector<std::string>& choices) const {
  const auto* text = value_->get<std::string>();
  if (text && std::find(choices.begin(), choices.end(), *text) != choices.end()) return *text;
  const std::string near = text ? nearest_name(*text, choices) : "";
  fail(list_of(choices) + " is needed" + (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& known, std::size_t part) {
  std::string best;
  std::size_t least = std::max<std::size_t>(name.size() / part, 1) + 1;
  for (const std::string& candidate : known) {
    // Levenshtein's distance, a row at a time.
    std::vector<std::size_t> row(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 0; i < name.size(); ++i) {
      std::size_t corner = row[0];
      row[0] = i + 1;
      for (std::size_t j = 0; j < candidate.size(); ++j) {
        const std::size_t change = corner + (name[i] != candidate[j] ? 1 : 0);
        corner = row[j + 1];
        row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, change});
      }
    }
    if (row.back() < least) {
      least = row.back();
      best = candidate;
    }
  }
  return best;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " or " : ", ";
    out += names[i];
  }
  return out;
}

}  // namespace dcpcheck
