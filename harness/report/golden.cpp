#include "harness/report/golden.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "harness/core/error.hpp"
#include "harness/core/json.hpp"
#include "harness/core/reader.hpp"

namespace dcpcheck {
namespace {

using json::Array;
using json::Object;
using json::text_or_null;
using json::Value;

constexpr std::string_view kSchema = "dcpcheck.golden/1";
constexpr json::Limits kLimits{std::size_t{64} << 20, 32};

auto order_of(const GoldenEntry& entry) { return std::tie(entry.name, entry.id); }

Value digests(const GoldenOutput& output) {
  return Object{{"raw", output.raw}, {"portable", output.portable.empty() ? Value() : Value(output.portable)}};
}

// A member on a line of its own, so that a difference between two files is one of lines.
std::string line(const std::string& indent, const std::string& name, const Value& value) {
  return indent + json::dump(Value(name)) + ": " + json::dump(value);
}

std::string entry_text(const GoldenEntry& entry) {
  const std::string indent(6, ' ');
  Object contract;
  for (const auto& [option, choice] : entry.contract) contract.emplace_back(option, choice);
  std::string text = "    {\n" + line(indent, "id", entry.id) + ",\n" + line(indent, "name", entry.name) + ",\n" +
                     line(indent, "op", entry.op) + ",\n" + line(indent, "kernel", entry.kernel) + ",\n" +
                     line(indent, "contract", contract) + ",\n";
  if (entry.environment)
    text += line(indent, "environment",
                 Object{{"kernel", entry.environment->kernel},
                        {"architecture", entry.environment->architecture},
                        {"driver", text_or_null(entry.environment->driver)},
                        {"cuda", text_or_null(entry.environment->cuda)}}) +
            ",\n";
  text += line(indent, "inputs", entry.inputs) + ",\n";
  if (entry.tokens) {
    Array requests;
    for (const auto& ids : *entry.tokens) requests.emplace_back(Array(ids.begin(), ids.end()));
    text += line(indent, "tokens", requests) + ",\n";
  }
  text += indent + "\"outputs\": {";
  const char* before = "\n";
  for (const auto& [name, output] : entry.outputs) {
    text += before + line(indent + "  ", name, digests(output));
    before = ",\n";
  }
  return text + (entry.outputs.empty() ? "}" : "\n" + indent + "}") + "\n    }";
}

std::string hex(const Reader& reader, std::size_t digits) {
  std::string text = reader.string();
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() != digits || !std::all_of(text.begin(), text.end(), is_hex))
    reader.fail(std::to_string(digits) + " hex digits, lower case, are needed");
  return text;
}

bool is_null(const Reader& reader) { return reader.value().get<std::nullptr_t>() != nullptr; }

std::optional<std::string> string_or_null(const Reader& reader) {
  if (is_null(reader)) return std::nullopt;
  return reader.string();
}

GoldenEnvironment environment_in(const Reader& reader) {
  reader.object({"kernel", "architecture", "driver", "cuda"});
  return {reader.at("kernel").string(), reader.at("architecture").string(), string_or_null(reader.at("driver")),
          string_or_null(reader.at("cuda"))};
}

GoldenEntry entry_in(const Reader& reader) {
  reader.object({"id", "name", "op", "kernel", "contract", "environment", "inputs", "tokens", "outputs"});
  GoldenEntry entry;
  entry.id = hex(reader.at("id"), 16);
  entry.name = reader.at("name").string();
  entry.op = reader.at("op").string();
  entry.kernel = reader.at("kernel").string();
  for (const auto& [option, choice] : reader.at("contract").members()) entry.contract[option] = choice.string();
  if (const auto environment = reader.find("environment")) entry.environment = environment_in(*environment);
  entry.inputs = hex(reader.at("inputs"), 64);
  for (const auto& [name, output] : reader.at("outputs").members()) {
    output.object({"raw", "portable"});
    const Reader portable = output.at("portable");
    entry.outputs[name] = {hex(output.at("raw"), 64), is_null(portable) ? std::string() : hex(portable, 64)};
  }
  if (const auto tokens = reader.find("tokens")) {
    entry.tokens.emplace();
    for (const Reader& request : tokens->elements()) {
      entry.tokens->emplace_back();
      for (const Reader& id : request.elements())
        entry.tokens->back().push_back(static_cast<std::int32_t>(id.integer(-1, std::numeric_limits<std::int32_t>::max())));
    }
  }
  return entry;
}

}  // namespace

std::string golden_text(Golden golden) {
  std::sort(golden.entries.begin(), golden.entries.end(),
            [](const GoldenEntry& a, const GoldenEntry& b) { return order_of(a) < order_of(b); });
  std::string text = "{\n" + line("  ", "schema", kSchema) + ",\n" + line("  ", "cases", golden.cases) + ",\n  \"entries\": [";
  const char* before = "\n";
  for (const GoldenEntry& entry : golden.entries) {
    text += before + entry_text(entry);
    before = ",\n";
  }
  return text + (golden.entries.empty() ? "]" : "\n  ]") + "\n}\n";
}

Golden parse_golden(std::string_view text, const std::string& source) {
  const json::Value document = json::parse(text, source, kLimits);
  const Reader reader(document, source);
  reader.object({"schema", "cases", "entries"});
  reader.at("schema").one_of({std::string(kSchema)});
  Golden golden;
  golden.cases = reader.at("cases").string();
  std::set<std::string> seen;
  for (const Reader& one : reader.at("entries").elements()) {
    golden.entries.push_back(entry_in(one));
    const GoldenEntry& entry = golden.entries.back();
    if (!seen.insert(entry.id).second) one.at("id").fail("an earlier entry is of this case, and there is one of each");
  }
  std::sort(golden.entries.begin(), golden.entries.end(),
            [](const GoldenEntry& a, const GoldenEntry& b) { return order_of(a) < order_of(b); });
  return golden;
}

Golden load_golden(const std::string& path) { return parse_golden(json::text_of(path, kLimits), path); }

GoldenDifference difference_of(const GoldenEntry& was, const GoldenEntry& is) {
  if (was.inputs != is.inputs) return {GoldenChange::inputs, {}};
  // Bits of ours do not depend on where they were made; others' do, and two kernels' bits need not be the same.
  const bool same_bits = was.environment == is.environment && (was.environment || was.kernel == is.kernel);
  std::vector<std::string> wrong, other_bits;
  for (const auto& [name, output] : was.outputs) {
    const auto found = is.outputs.find(name);
    if (found == is.outputs.end()) {
      wrong.push_back(name);
    } else if (output.raw != found->second.raw) {
      const bool as_right = !output.portable.empty() && output.portable == found->second.portable;
      // Of a pipeline nothing but its tokens can be held to a portable digest.
      const bool open = output.portable.empty() && found->second.portable.empty() && was.tokens && name != "tokens";
      (!same_bits && (as_right || open) ? other_bits : wrong).push_back(name);
    }
  }
  for (const auto& [name, output] : is.outputs)
    if (!was.outputs.contains(name)) wrong.push_back(name);
  if (!wrong.empty() && was.tokens) wrong.insert(wrong.end(), other_bits.begin(), other_bits.end());  // they may be why
  std::sort(wrong.begin(), wrong.end());
  if (!wrong.empty()) return {GoldenChange::outputs, wrong};
  if (!other_bits.empty()) return {GoldenChange::bits, other_bits};
  return {};
}

}  // namespace dcpcheck
