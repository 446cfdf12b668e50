#include "harness/core/json.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "harness/core/error.hpp"

namespace dcpcheck::json {
namespace {

// Builds a Value from SAX events, so that depth and duplicate keys are refused while reading and nothing that deep is
// ever built.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(const std::string& source, int depth) : source_(source), max_depth_(depth) {}

  Value take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(std::int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    // Past 2^63 an integer is kept as a double: the rules that follow call it out of range by its value.
    if (value > static_cast<number_unsigned_t>(INT64_MAX)) return add(static_cast<double>(value));
    return add(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    if (!std::isfinite(value)) throw InputError(source_ + ": the number " + text + " is too large");
    return add(value);
  }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Object{}); }
  bool start_array(std::size_t) override { return open(Array{}); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    Level& level = stack_.back();
    if (!level.keys.insert(name).second) {
      throw InputError(source_ + ": the key \"" + name + "\" stands twice in one object");
    }
    std::get<Object>(level.value->data).emplace_back(std::move(name), nullptr);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) override {
    std::string what = error.what();  // "[json.exception.parse_error.101] parse error at line …: …"
    if (const auto bracket = what.find("] "); bracket != std::string::npos) what.erase(0, bracket + 2);
    throw InputError(source_ + ": not valid JSON near byte " + std::to_string(position) + " (" + what + ")");
  }

 private:
  struct Level {
    Value* value;
    std::set<std::string> keys;  // of an object, so far
  };

  bool add(Value value) {
    place(std::move(value));
    return true;
  }
  bool open(Value container) {
    if (static_cast<int>(stack_.size()) >= max_depth_) {
      throw InputError(source_ + ": nested deeper than " + std::to_string(max_depth_) + " levels");
    }
    stack_.push_back({place(std::move(container)), {}});
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }
  // Only the innermost container grows, so the pointers on the stack stay good.
  Value* place(Value value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (auto* object = std::get_if<Object>(&stack_.back().value->data)) {
      object->back().second = std::move(value);
      return &object->back().second;
    }
    auto& array = std::get<Array>(stack_.back().value->data);
    array.push_back(std::move(value));
    return &array.back();
  }

  const std::string& source_;
  int max_depth_;
  Value root_;
  std::vector<Level> stack_;
};

void write_string(const std::string& text, std::string& out) {
  out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void write_number(double value, std::string& out) {
  if (std::isnan(value)) {
    out += "\"nan\"";
  } else if (std::isinf(value)) {
    out += value < 0 ? "\"-inf\"" : "\"inf\"";
  } else {
    out += nlohmann::json(value).dump();
  }
}

struct Writer {
  int indent;
  bool sorted;
  std::string out;

  void line(int level) {
    if (indent == 0) return;
    out += '\n';
    out.append(static_cast<std::size_t>(level) * static_cast<std::size_t>(indent), ' ');
  }
  void write(const Value& value, int level) {
    if (value.get<std::nullptr_t>()) out += "null";
    if (const bool* flag = value.get<bool>()) out += *flag ? "true" : "false";
    if (const auto* number = value.get<std::int64_t>()) out += std::to_string(*number);
    if (const auto* number = value.get<double>()) write_number(*number, out);
    if (const auto* text = value.get<std::string>()) write_string(*text, out);
    if (const auto* array = value.get<Array>()) write(*array, level);
    if (const auto* object = value.get<Object>()) write(*object, level);
  }
  void write(const Array& array, int level) {
    // Arrays of plain values stay on one line: a person reads "[0, 3]" better so.
    const bool flat =
        std::none_of(array.begin(), array.end(), [](const Value& v) { return v.get<Array>() || v.get<Object>(); });
    out += '[';
    for (std::size_t i = 0; i < array.size(); ++i) {
      if (i > 0) out += flat && indent > 0 ? ", " : ",";
      if (!flat) line(level + 1);
      write(array[i], level + 1);
    }
    if (!flat) line(level);
    out += ']';
  }
  void write(const Object& object, int level) {
    std::vector<const Member*> members;
    for (const Member& member : object) members.push_back(&member);
    if (sorted) {
      std::sort(members.begin(), members.end(), [](const Member* a, const Member* b) { return a->first < b->first; });
    }
    out += '{';
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out += ',';
      line(level + 1);
      write_string(members[i]->first, out);
      out += indent > 0 ? ": " : ":";
      write(members[i]->second, level + 1);
    }
    if (!members.empty()) line(level);
    out += '}';
  }
};

}  // namespace

// Out of line, all of them: a variant that holds vectors of Member can be built and destroyed only where Member is whole.
Value::Value() : data(nullptr) {}
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;
Value::Value(std::nullptr_t) : data(nullptr) {}
Value::Value(bool value) : data(value) {}
Value::Value(int value) : data(std::int64_t{value}) {}
Value::Value(long value) : data(std::int64_t{value}) {}
Value::Value(long long value) : data(std::int64_t{value}) {}
Value::Value(unsigned long value) : data(static_cast<std::int64_t>(value)) {}
Value::Value(double value) : data(value) {}
Value::Value(const char* value) : data(std::string(value)) {}
Value::Value(std::string_view value) : data(std::string(value)) {}
Value::Value(std::string value) : data(std::move(value)) {}
Value::Value(Array value) : data(std::move(value)) {}
Value::Value(Object value) : data(std::move(value)) {}

const Value* Value::find(std::string_view key) const {
  if (const auto* object = get<Object>()) {
    for (const Member& member : *object) {
      if (member.first == key) return &member.second;
    }
  }
  return nullptr;
}

std::string Value::describe() const {
  if (get<Array>()) return "an array";
  if (get<Object>()) return "an object";
  std::string text = dump(*this);
  if (text.size() > 60) text = text.substr(0, 56) + "…\"";
  return text;
}

std::string text_of(const std::string& path, Limits limits) {
  // Opening a pipe that nobody writes to would wait for ever.
  std::error_code error;
  if (std::filesystem::is_fifo(path, error) || std::filesystem::is_socket(path, error))
    throw InputError(path + ": is a pipe or a socket, but a file is needed");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(path + ": cannot be opened: " + std::generic_category().message(errno));
  // One byte over the limit is enough to know, so an endless file costs nothing.
  std::string text(limits.bytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) throw InputError(path + ": cannot be read: " + std::generic_category().message(errno));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

Value parse(std::string_view text, const std::string& source, Limits limits) {
  if (text.size() > limits.bytes) {
    throw InputError(source + ": larger than " + std::to_string(limits.bytes) + " bytes");
  }
  // The library takes a NUL for the end, and what follows would never be looked at.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    throw InputError(source + ": not valid JSON near byte " + std::to_string(nul) + " (it holds a NUL)");
  }
  Builder builder(source, limits.depth);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) throw InputError(source + ": not valid JSON");
  return builder.take();
}

Array numbers(const std::vector<std::int64_t>& values) {
  Array out;
  for (const std::int64_t value : values) out.emplace_back(value);
  return out;
}

std::string dump(const Value& value, int indent) {
  Writer writer{indent, false, {}};
  writer.write(value, 0);
  return std::move(writer.out);
}

std::string canonical(const Value& value) {
  Writer writer{0, true, {}};
  writer.write(value, 0);
  return std::move(writer.out);
}

}  // namespace dcpcheck::json
