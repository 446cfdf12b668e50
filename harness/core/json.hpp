// A small JSON value, and the only door to the JSON library (json.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace dcpcheck::json {

struct Value;
using Array = std::vector<Value>;
struct Member;
using Object = std::vector<Member>;  // keeps the order of insertion; reading refuses duplicate keys

struct Value {
  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array, Object> data;

  Value();
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();
  Value(std::nullptr_t);
  Value(bool value);
  Value(int value);
  Value(long value);
  Value(long long value);
  Value(unsigned long value);
  Value(double value);  // written as a string ("inf", "-inf", "nan") where JSON has no number
  Value(const char* value);
  Value(std::string_view value);
  Value(std::string value);
  Value(Array value);
  Value(Object value);

  template <class T>
  const T* get() const {
    return std::get_if<T>(&data);
  }

  // The member called `key`; nullptr where there is none or this is no object.
  const Value* find(std::string_view key) const;
  // The value as it would be called in an error: "null", "true", "42", "a string", "an array", …
  std::string describe() const;

  friend bool operator==(const Value& a, const Value& b);
};

struct Limits {
  std::size_t bytes = 1 << 20;
  int depth = 32;
};

struct Member {
  Member(std::string name, Value value) : first(std::move(name)), second(std::move(value)) {}
  std::string first;
  Value second;
  friend bool operator==(const Member&, const Member&) = default;
};

inline bool operator==(const Value& a, const Value& b) { return a.data == b.data; }

// The text of the file `path` that a document is expected in: what a file that is too large has beyond the limit is cut but for
// one byte, which parse() refuses. Throws InputError where it cannot be read.
std::string text_of(const std::string& path, Limits limits = {});

// The document in `text`. Throws InputError, its sentence starting with `source` (a file's name), where the text
// is too large, too deep, malformed, truncated, not UTF-8, or names a key twice.
Value parse(std::string_view text, const std::string& source, Limits limits = {});

// `indent` spaces a level; 0 gives one line with no spaces. Members in the order they have. A string that is not
// UTF-8 (a file's name can be that) is written with U+FFFD in place of what is not.
std::string dump(const Value& value, int indent = 0);

// A list of numbers.
Array numbers(const std::vector<std::int64_t>& values);

// The text, or null where there is none.
inline Value text_or_null(const std::string& text) { return text.empty() ? Value() : Value(text); }
inline Value text_or_null(const std::optional<std::string>& text) { return text ? Value(*text) : Value(); }

// dump() on one line with all keys sorted by code unit: the form that ids are taken of.
std::string canonical(const Value& value);

}  // namespace dcpcheck::json
