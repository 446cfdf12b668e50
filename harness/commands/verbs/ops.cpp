#include <algorithm>
#include <sstream>
#include <variant>

#include "harness/commands/context.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/verb.hpp"
#include "harness/core/error.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck::verbs {
namespace {

std::string in_words(const ParamValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  std::ostringstream out;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) out << *integer;
  if (const auto* number = std::get_if<float>(&value)) out << *number;
  return out.str();
}

std::string range_of(const Param& param) {
  std::ostringstream out;
  switch (param.kind) {
    case Param::Kind::flag: return "true or false";
    case Param::Kind::integer: out << param.min << " to " << param.max; break;
    case Param::Kind::number: out << param.least << " to " << param.most; break;
    case Param::Kind::choice: return text::list(param.choices);
  }
  return out.str();
}

// A dtype that is always the same is a quoted name; others are expressions.
std::string dtype_of(const std::string& text) {
  const bool quoted = text.size() > 2 && text.front() == '\'' && text.find('\'', 1) == text.size() - 1;
  return quoted ? text.substr(1, text.size() - 2) : text;
}

std::string role_of(const TensorSpec& tensor) {
  if (tensor.role == Role::cache) return "cache " + tensor.cache + ", addressed by " + tensor.slot_mapping;
  std::string line = std::string(tensor.role == Role::in ? "in " : "out ") + dtype_of(tensor.dtype.text()) + " [";
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) line += (axis == 0 ? "" : ", ") + tensor.shape[axis].text();
  return line + "]" + (tensor.per_group ? " for each cache group" : "");
}

// "kv_c e4m3 [512] / tile_scales per 128 | tile_scales fp32 [4]".
std::string fields_of(const Record& record) {
  std::string line;
  for (const Field& field : record.fields) {
    line +=
        (line.empty() ? "" : " | ") + field.name + " " + std::string(name_of(field.dtype)) + " [" + field.count.text() + "]";
    if (!field.scaled_by.empty()) line += " / " + field.scaled_by + " per " + field.tile.text();
  }
  return line + (record.planar ? ", field after field in each block" : "");
}

void item(std::ostream& out, const std::string& line) { out << text::wrap("  " + line, text::kColumns, 6); }

void describe(std::ostream& out, const Op& op) {
  out << op.name << " (version " << op.version << ")\n" << text::wrap("  " + op.doc, text::kColumns, 2);
  if (!op.reference.empty()) out << text::wrap("  What is right of it tells " + op.reference + ".", text::kColumns, 2);
  if (!op.params.empty()) out << "\nParams:\n";
  for (const Param& param : op.params)
    item(out, param.name + ": " + range_of(param) + "; default " + in_words(param.value) + ". " + param.doc);
  if (!op.contract.empty()) out << "\nContract options (the first is the default):\n";
  for (const Option& option : op.contract) {
    std::string values;
    for (const std::string& value : option.values) values += (values.empty() ? "" : " | ") + value;
    item(out, option.name + ": " + values + ". " + option.doc);
  }
  if (!op.presets.empty()) out << "\nPresets (of options not named, the default):\n";
  for (const Preset& preset : op.presets) {
    std::string says;
    for (const auto& [option, values] : preset.options) says += (says.empty() ? "" : ", ") + option + " " + text::list(values);
    for (const Requirement& rule : preset.requirements) says += (says.empty() ? "" : ", ") + rule.that.text();
    item(out, preset.name + ": " + says + ". " + preset.doc);
  }
  out << "\nTensors:\n";
  for (const TensorSpec& tensor : op.tensors) {
    item(out, tensor.name + ": " + role_of(tensor) + (tensor.when.empty() ? "" : ", when " + tensor.when.text()) + ". " +
                  tensor.doc);
    for (const Record& record : tensor.records) {
      out << text::wrap(
          "      a record" + (record.when.empty() ? "" : " when " + record.when.text()) + ": " + fields_of(record),
          text::kColumns, 10);
    }
  }
  if (!op.require.empty()) out << "\nRules:\n";
  for (const Requirement& rule : op.require) item(out, rule.say);
}

int run_ops(const Arguments& arguments, Context& context) {
  const JsonTarget target(arguments, context);
  const std::string wanted = arguments.operands.empty() ? "" : arguments.operands.front();
  if (!wanted.empty()) static_cast<void>(op_named(context, wanted));
  json::Array sources;
  bool first = true;
  for (const auto& [name, op] : context.ops) {
    if (!wanted.empty() && wanted != name) continue;
    sources.push_back(op.source);
    if (target.wanted()) continue;
    if (!first) target.console() << "\n";
    first = false;
    describe(target.console(), op);
  }
  if (target.wanted()) target.write(wanted.empty() ? json::Value(std::move(sources)) : sources.front());
  return 0;
}

}  // namespace

Verb ops() {
  return {"ops",
          "Show the ops: params, contract options, tensors",
          "With --json: the op's document as it was read, or the list of all.",
          {"NAME", "one op; default: all", false, false},
          {json_option(), ops_option()},
          run_ops};
}

}  // namespace dcpcheck::verbs
