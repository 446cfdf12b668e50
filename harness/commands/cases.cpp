#include "harness/commands/cases.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

#include "harness/commands/overrides.hpp"
#include "harness/core/error.hpp"
#include "harness/core/plan.hpp"
#include "harness/exec/generate.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEmbedded = "repro:";
constexpr std::string_view kGolden = ".golden.json";  // may lie among cases, and is none

// What is to be read: its reference, and how.
struct Source {
  std::string reference;
  std::function<CaseFile(const Context&)> read;
};

Source embedded_source(const EmbeddedFile& file) {
  const std::string reference = std::string(kEmbedded) + file.name;
  return {reference, [&file, reference](const Context& context) { return parse_case_file(context.ops, file.text, reference); }};
}

Source file_source(const std::string& path) {
  return {path, [path](const Context& context) { return load_case_file(context.ops, path); }};
}

Source embedded_named(const Context& context, const std::string& operand) {
  const std::string name = operand.substr(kEmbedded.size());
  std::vector<std::string> names;
  for (const EmbeddedFile& file : context.corpus) {
    if (file.name == name) return embedded_source(file);
    names.push_back(file.name);
  }
  const std::string near = text::nearest(name, names);
  throw InputError("there is no case '" + text::printable(operand) + "'" +
                   (near.empty() ? "; repro --list shows them" : ": did you mean " + std::string(kEmbedded) + near + "?"));
}

std::vector<Source> sources_of(const Context& context, const std::string& operand) {
  if (operand.starts_with(kEmbedded)) return {embedded_named(context, operand)};
  std::error_code error;
  const fs::file_status status = fs::status(operand, error);
  if (!fs::exists(status))
    throw InputError(
        text::printable(operand) + ": " +
        (error && error != std::errc::no_such_file_or_directory ? error.message() : "there is no such file or folder"));
  if (!fs::is_directory(status)) return {file_source(operand)};
  std::vector<std::string> paths;
  fs::recursive_directory_iterator entries(operand, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error))
    if (entries->path().extension() == ".json" && !entries->path().string().ends_with(kGolden) && !entries->is_directory(error))
      paths.push_back(entries->path().string());
  if (error) throw InputError(text::printable(operand) + ": the folder could not be read: " + error.message());
  std::sort(paths.begin(), paths.end());
  std::vector<Source> sources;
  sources.reserve(paths.size());
  for (const std::string& path : paths) sources.push_back(file_source(path));
  return sources;
}

NamedCase load(const Context& context, const Source& source, const CaseRules& rules) {
  NamedCase loaded;
  loaded.reference = source.reference;
  loaded.file = source.read(context);
  if (!rules.sets.empty()) {
    loaded.file.value = with_overrides(context.ops, loaded.file.value, rules.sets, source.reference);
    loaded.file.expect = nullptr;  // what it says is of the case as it is stored
    loaded.sets = rules.sets;
  }
  if (rules.seed) loaded.file.value.seed = *rules.seed;
  const auto op = context.ops.find(loaded.file.value.op);
  if (op == context.ops.end())
    throw InputError(source.reference + ": there is no op '" + text::printable(loaded.file.value.op) + "'");
  loaded.op = &op->second;
  loaded.id = case_id(*loaded.op, loaded.file.value);
  // For what they refuse.
  make_plan(*loaded.op, loaded.file.value, rules.memory, source.reference);
  if (!loaded.op->pipeline.empty()) check_generate(context.ops, *loaded.op, loaded.file.value, rules.memory, source.reference);
  return loaded;
}

std::vector<NamedCase> load_all(const Context& context, const std::vector<Source>& sources, const CaseRules& rules,
                                std::string complaints) {
  std::vector<NamedCase> cases;
  for (const Source& source : sources) {
    context.check_interrupted();
    try {
      cases.push_back(load(context, source, rules));
    } catch (const InputError& error) {
      complaints += (complaints.empty() ? "" : "\n") + std::string(error.what());
    }
  }
  if (!complaints.empty()) throw InputError(complaints);
  return cases;
}

// A list of names in an expectation; loading has checked that it is one.
std::optional<std::vector<std::string>> names_in(const json::Value& entry, std::string_view key) {
  const json::Value* value = entry.find(key);
  const auto* array = value == nullptr ? nullptr : value->get<json::Array>();
  if (array == nullptr) return std::nullopt;
  std::vector<std::string> names;
  for (const json::Value& item : *array)
    if (const auto* name = item.get<std::string>()) names.push_back(*name);
  return names;
}

}  // namespace

std::vector<NamedCase> load_cases(const Context& context, const std::vector<std::string>& operands, const CaseRules& rules) {
  std::vector<Source> sources;
  std::string complaints;
  for (const std::string& operand : operands) {
    try {
      for (Source& source : sources_of(context, operand)) sources.push_back(std::move(source));
    } catch (const InputError& error) {
      complaints += (complaints.empty() ? "" : "\n") + std::string(error.what());
    }
  }
  return load_all(context, sources, rules, complaints);
}

std::vector<NamedCase> load_embedded(const Context& context, const CaseRules& rules) {
  std::vector<Source> sources;
  for (const EmbeddedFile& file : context.corpus) sources.push_back(embedded_source(file));
  return load_all(context, sources, rules, {});
}

Expectation expectation_of(const CaseFile& file, const Kernel& kernel) {
  Expectation expected;
  const json::Value* entry = file.expect.find(kernel.fault.empty() ? "fixed" : kernel.op + "@" + kernel.fault);
  if (entry == nullptr && !kernel.fault.empty()) entry = file.expect.find(kernel.fault);
  const json::Value* status = entry == nullptr ? nullptr : entry->find("status");
  const auto* name = status == nullptr ? nullptr : status->get<std::string>();
  if (name == nullptr) return expected;
  for (const Status known : kStatuses)
    if (name_of(known) == *name) expected.status = known;
  expected.reasons = names_in(*entry, "reasons");
  expected.buffers = names_in(*entry, "buffers");
  return expected;
}

std::vector<std::string> expected_faults(const CaseFile& file) {
  std::vector<std::string> faults;
  if (const auto* object = file.expect.get<json::Object>())
    for (const auto& [key, value] : *object)
      if (key != "fixed") faults.push_back(key);
  return faults;
}

}  // namespace dcpcheck
