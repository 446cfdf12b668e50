#include "harness/commands/overrides.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "harness/core/error.hpp"
#include "harness/core/json.hpp"
#include "harness/core/reader.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

using Path = std::vector<std::string>;

// One override, taken apart.
struct Override {
  std::string text;  // as given, for errors
  Path path;
  std::string value;
};

[[noreturn]] void refuse(const Override& given, const std::string& why) {
  throw InputError("--set " + text::printable(given.text) + ": " + why);
}

std::string joined(const Path& path, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += (i == 0 ? "" : ".") + path[i];
  return text::printable(out);
}

Override take_apart(const std::string& text) {
  Override given{text, {}, {}};
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) refuse(given, "PATH=VALUE is needed, as in dcp.world_size=4");
  given.value = text.substr(equals + 1);
  for (std::size_t at = 0; at <= equals;) {
    const std::size_t dot = std::min(text.find('.', at), equals);
    given.path.push_back(text.substr(at, dot - at));
    if (given.path.back().empty()) refuse(given, "its path has an empty name");
    at = dot + 1;
  }
  return given;
}

// The path from the case on: "dcp.world_size" is one of the geometry.
Path from_the_case(const Op& op, const Override& given) {
  const std::vector<std::string> fields{"op", "seed", "geometry", "params", "contract", "layout", "values", "launch"};
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const std::string& first = given.path.front();
  if (first == "op") refuse(given, "a case of another op is another case");
  if (has(fields, first)) return given.path;
  std::vector<std::string> parents;
  if (has(op.geometry, first)) parents.emplace_back("geometry");
  if (op.param(first) != nullptr) parents.emplace_back("params");
  if (op.option(first) != nullptr) parents.emplace_back("contract");
  if (parents.size() > 1) {
    std::vector<std::string> full;
    for (const std::string& parent : parents) full.push_back(parent + "." + first);
    refuse(given, text::printable(first) + " may be " + list_of(full));
  }
  if (parents.empty()) {
    std::vector<std::string> known = fields;
    known.insert(known.end(), op.geometry.begin(), op.geometry.end());
    for (const Param& param : op.params) known.push_back(param.name);
    for (const Option& option : op.contract) known.push_back(option.name);
    const std::string near = nearest_name(first, known);
    refuse(given, "a case of " + op.name + " has no field '" + text::printable(first) + "'" +
                      (near.empty() ? "; dcpcheck ops " + op.name + " shows params and contract options"
                                    : ": did you mean " + near + "?"));
  }
  Path path{parents.front()};
  path.insert(path.end(), given.path.begin(), given.path.end());
  return path;
}

// Whether the field holds text, which may look like a number: padding.slots is "-1", a contract option may be "2".
bool holds_text(const Op& op, const Path& path) {
  if (path.front() == "seed") return true;
  if (path.size() == 2 && path.front() == "params") {
    const Param* const param = op.param(path[1]);
    return param != nullptr && param->kind == Param::Kind::choice;
  }
  if (path.size() == 2) return path.front() == "contract" || path.front() == "values";
  return path.size() == 3 && path.front() == "geometry" && path[1] == "padding" && path[2] != "tokens";
}

json::Value read_value(const Op& op, const Override& given, const Path& path) {
  if (given.value == "null") return nullptr;
  const bool quoted = given.value.starts_with('"');
  if (holds_text(op, path) && !quoted) return given.value;
  try {
    return json::parse(given.value, "value");
  } catch (const InputError&) {
    // A word needs no quotes; what begins as a list, an object or a quoted text and is none is a slip.
    if (given.value.empty() || quoted || given.value.starts_with('[') || given.value.starts_with('{'))
      refuse(given, "its value is no JSON");
    return given.value;
  }
}

std::optional<std::size_t> index_in(const std::string& name) {
  std::size_t index = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  return error == std::errc{} && stop == name.data() + name.size() ? std::optional(index) : std::nullopt;
}

// Puts `value` at path[at…] of `place`; objects on the way are made where there are none.
void put(json::Value& place, const Override& given, const Path& path, std::size_t at, json::Value value) {
  const bool last = at + 1 == path.size();
  const std::string& name = path[at];
  if (auto* const list = std::get_if<json::Array>(&place.data)) {
    const std::optional<std::size_t> index = index_in(name);
    if (!index || *index > list->size())
      refuse(given, joined(path, at) + " has " + text::count(std::ssize(*list), "element") + ", so an index from 0 to " +
                        std::to_string(list->size()) + " is needed, not '" + text::printable(name) + "'");
    if (last && value.get<std::nullptr_t>() != nullptr) {
      if (*index == list->size()) refuse(given, joined(path, at) + " has no element " + name + " to take out");
      list->erase(list->begin() + static_cast<std::ptrdiff_t>(*index));
      return;
    }
    if (*index == list->size()) list->emplace_back(json::Object{});
    if (!last) return put((*list)[*index], given, path, at + 1, std::move(value));
    (*list)[*index] = std::move(value);
    return;
  }
  auto* const object = std::get_if<json::Object>(&place.data);
  if (object == nullptr) refuse(given, joined(path, at) + " is " + place.describe() + ", which has no fields");
  const auto found =
      std::find_if(object->begin(), object->end(), [&](const json::Member& member) { return member.first == name; });
  if (last && value.get<std::nullptr_t>() != nullptr) {
    if (found != object->end()) object->erase(found);
    return;
  }
  if (last && found == object->end()) {
    object->emplace_back(name, std::move(value));
    return;
  }
  if (last) {
    found->second = std::move(value);
    return;
  }
  // A batch is a list, also where the case has none yet.
  if (found == object->end()) {
    object->emplace_back(name, index_in(path[at + 1]) && name == "batch" ? json::Value(json::Array{}) : json::Object{});
    return put(object->back().second, given, path, at + 1, std::move(value));
  }
  put(found->second, given, path, at + 1, std::move(value));
}

}  // namespace

Case with_overrides(const Ops& ops, const Case& value, const std::vector<std::string>& overrides, const std::string& source) {
  if (overrides.empty()) return value;
  const Op& op = ops.at(value.op);
  json::Value document = case_to_json(op, value);
  std::string named = source + " with";
  for (const std::string& text : overrides) {
    const Override given = take_apart(text);
    const Path path = from_the_case(op, given);
    put(document, given, path, 0, read_value(op, given, path));
    named += " --set " + text::printable(text);
  }
  Case replaced = case_from_json(ops, document, named);
  replaced.stored = value.stored;
  return replaced;
}

}  // namespace dcpcheck
