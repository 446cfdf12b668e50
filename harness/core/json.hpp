// A small JSON value, and the only door to the JSON library (json.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace dcpcheck::json {

struct Value;
using Array = std::vector<Value>;
using Member = std::pair<std::string, Value>;
using Object = std::vector<Member>;  // keeps the order of insertion; reading refuses duplicate keys

struct Value {
  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array, Object> data = nullptr;

  Value() = default;
  Value(std::nullptr_t) {}
  Value(bool value) : data(value) {}
  Value(int value) : data(std::int64_t{value}) {}
  Value(long value) : data(std::int64_t{value}) {}
  Value(long long value) : data(std::int64_t{value}) {}
  Value(unsigned long value) : data(static_cast<std::int64_t>(value)) {}
  Value(double value) : data(value) {}  // written as a string ("inf", "-inf", "nan") where JSON has no number
  Value(const char* value) : data(std::string(value)) {}
  Value(std::string_view value) : data(std::string(value)) {}
  Value(std::string value) : data(std::move(value)) {}
  Value(Array value) : data(std::move(value)) {}
  Value(Object value) : data(std::move(value)) {}

  template <class T>
  const T* get() const {
    return std::get_if<T>(&data);
  }

  // The member called `key`; nullptr where there is none or this is no object.
  const Value* find(std::string_view key) const;
  // The value as it would be called in an error: "null", "true", "42", "a string", "an array", …
  std::string describe() const;

  friend bool operator==(const Value&, const Value&) = default;
};

struct Limits {
  std::size_t bytes = 1 << 20;
  int depth = 32;
};

// The document in `text`. Throws InputError, its sentence starting with `source` (a file's name), where the text
// is too large, too deep, malformed, truncated, not UTF-8, or names a key twice.
Value parse(std::string_view text, const std::string& source, Limits limits = {});

// `indent` spaces a level; 0 gives one line with no spaces. Members in the order they have. A string that is not
// UTF-8 (a file's name can be that) is written with U+FFFD in place of what is not.
std::string dump(const Value& value, int indent = 0);

// dump() on one line with all keys sorted by code unit: the form that ids are taken of.
std::string canonical(const Value& value);

}  // namespace dcpcheck::json
