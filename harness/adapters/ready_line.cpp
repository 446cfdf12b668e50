#include "harness/adapters/ready_line.hpp"

#include <algorithm>
#include <vector>

#include "harness/core/error.hpp"
#include "harness/core/json.hpp"
#include "harness/core/reader.hpp"

namespace dcpcheck {
namespace {

constexpr int kDepth = 8;

std::string some_text(const Reader& reader) {
  std::string text = reader.string();
  if (text.empty()) reader.fail("it is a text that is not empty");
  return text;
}

std::vector<std::string> texts(const Reader& reader) {
  std::vector<std::string> all;
  for (const Reader& element : reader.elements()) all.push_back(some_text(element));
  return all;
}

std::vector<Requirement> requirements_of(const Reader& reader, const std::string& source) {
  std::vector<Requirement> requirements;
  for (const Reader& element : reader.elements()) {
    element.object({"that", "say"});
    const std::optional<Reader> say = element.find("say");
    try {
      requirements.push_back({Expression(some_text(element.at("that"))), say ? say->string() : ""});
    } catch (const InputError& error) {
      throw InputError(source + ": a requirement of it is none: " + error.what());
    }
  }
  return requirements;
}

}  // namespace

ReadyLine read_ready_line(const std::string& line, const Ops& ops, const std::string& source) {
  const std::string place = source + ": its ready line";
  const json::Value value = json::parse(line, place, {line.size() + 1, kDepth});
  const Reader reader(value, place);
  // First, as all else may be otherwise in another version.
  const json::Value* const version = value.find("dcpcheck");
  if (version != nullptr && *version != json::Value(kProtocolVersion))
    throw InputError(source + ": it speaks version " + version->describe() + " of the protocol, and this dcpcheck speaks " +
                     std::to_string(kProtocolVersion));
  reader.object({"dcpcheck", "op", "name", "doc", "devices", "preset", "options", "tensors", "requirements", "source", "ipc"});
  static_cast<void>(reader.at("dcpcheck"));
  ReadyLine ready;
  const Op& op = op_of_kernel(some_text(reader.at("op")), ops, source);
  ready.op = op.name;
  ready.declared.name = some_text(reader.at("name"));
  ready.declared.source = some_text(reader.at("source"));
  if (const auto doc = reader.find("doc")) ready.declared.doc = doc->string();
  if (const auto ipc = reader.find("ipc")) ready.ipc = ipc->boolean();
  const Reader devices = reader.at("devices");
  for (const Reader& device : devices.elements()) (device.one_of({"host", "cuda"}) == "host" ? ready.host : ready.cuda) = true;
  if (!ready.host && !ready.cuda) devices.fail("it runs on host, cuda or both");
  if (const auto preset = reader.find("preset")) ready.declared.preset = some_text(*preset);
  if (const auto options = reader.find("options"))
    for (const auto& [name, values] : options->members()) {
      ready.declared.options[name] = texts(values);
      if (ready.declared.options[name].empty()) values.fail("an option that it follows has one value or more");
    }
  if (const auto tensors = reader.find("tensors")) ready.declared.tensors = texts(*tensors);
  if (const auto requirements = reader.find("requirements"))
    ready.declared.requirements = requirements_of(*requirements, source);
  apply_preset(ready.declared, op, source);
  check_declaration(ready.declared, op, source);
  return ready;
}

}  // namespace dcpcheck
