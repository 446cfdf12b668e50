// Strict reading of JSON values: every error names the file, the JSON pointer, the value and the rule.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/json.hpp"

namespace dcpcheck {

// A value in a document, and where it stands. Cheap to copy; the document must outlive it.
class Reader {
 public:
  Reader(const json::Value& value, std::string source, std::string pointer = "")
      : value_(&value), source_(std::move(source)), pointer_(std::move(pointer)) {}

  const json::Value& value() const { return *value_; }
  const std::string& pointer() const { return pointer_; }

  // Throws InputError "<source>: <pointer> is <value>, but <rule>".
  [[noreturn]] void fail(const std::string& rule) const;

  // Checks that this is an object whose keys are all in `known`; an unknown one is named, with the nearest known.
  void object(const std::vector<std::string>& known) const;
  // The names and values of an object with free keys.
  std::vector<std::pair<std::string, Reader>> members() const;
  std::vector<Reader> elements() const;

  // The member called `key`: none where it is absent; at() throws instead.
  std::optional<Reader> find(std::string_view key) const;
  Reader at(std::string_view key) const;

  bool boolean() const;
  std::int64_t integer(std::int64_t min, std::int64_t max) const;
  std::int64_t count() const;  // an integer that is not negative
  double number() const;
  std::string string() const;
  std::string one_of(const std::vector<std::string>& choices) const;

 private:
  Reader child(const json::Value& value, std::string_view key) const;

  const json::Value* value_;
  std::string source_, pointer_;
};

// The one of `known` that `name` may have been meant to be; empty where none is near: where more than one letter, and
// more than one in `part` of the name's, would have to change.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known, std::size_t part = 2);

// "a, b or c".
std::string list_of(const std::vector<std::string>& names);

}  // namespace dcpcheck
