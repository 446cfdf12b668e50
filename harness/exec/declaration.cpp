#include "harness/exec/declaration.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "harness/core/error.hpp"
#include "harness/core/reader.hpp"

namespace dcpcheck {
namespace {

// What the environment of a case has besides params and options: see make_plan.
constexpr std::array<std::string_view, 11> kSizes{"T",      "live", "capacity",     "R", "G", "tp", "W", "I",
                                                  "cached", "idle", "last_position"};
constexpr std::array<std::string_view, 11> kOfGroup{"present",
                                                    "mapped",
                                                    "own_map",
                                                    "sharded",
                                                    "blocks",
                                                    "block_size",
                                                    "kernel_block_size",
                                                    "table_columns",
                                                    "chunk_rows",
                                                    "context_rows",
                                                    "block_stride_padding"};

template <class List>
bool has(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = nearest_name(word, known);
  return near.empty() ? "" : ": did you mean " + near + "?";
}

std::string listed(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : " or ") + word;
  return list;
}

}  // namespace

std::span<const std::string_view> terms_of_group() { return kOfGroup; }

std::vector<std::string> terms_of(const Op& op) {
  std::vector<std::string> terms(kSizes.begin(), kSizes.end());
  terms.emplace_back("padding.in_range");
  for (const Param& param : op.params)
    if (param.kind != Param::Kind::number) terms.push_back(param.name);
  for (const Option& option : op.contract) terms.push_back("option." + option.name);
  for (const std::string& group : op.caches)
    for (const std::string_view term : kOfGroup) terms.push_back(group + "." + std::string(term));
  return terms;
}

std::vector<std::string> layout_terms_of(const Op& op) {
  std::vector<std::string> terms;
  for (const TensorSpec& tensor : op.tensors)
    if (tensor.strided && !tensor.per_group) terms.push_back(tensor.name + ".dense");
  return terms;
}

Environment with_layout(const Plan& plan) {
  Environment environment = plan.environment;
  for (const TensorSpec& spec : plan.op->tensors) {
    if (!spec.strided || spec.per_group) continue;
    const TensorPlan* const tensor = plan.find(spec.name);
    const bool dense = tensor == nullptr || (tensor->offset == 0 && tensor->strides.front() == tensor->columns());
    environment[spec.name + ".dense"] = std::int64_t{dense ? 1 : 0};
  }
  return environment;
}

bool is_term(const Op& op, const std::vector<std::string>& terms, const std::string& name) {
  if (has(terms, name)) return true;
  const std::size_t dot = name.find('.');
  return dot != std::string::npos && has(op.caches, "*") && has(kOfGroup, name.substr(dot + 1));
}

namespace {

void check_options(const Declaration& declaration, const Op& op, const std::string& source) {
  for (const auto& [name, values] : declaration.options) {
    const Option* option = op.option(name);
    if (option == nullptr) {
      std::vector<std::string> known;
      for (const Option& each : op.contract) known.push_back(each.name);
      throw InputError(source + ": it follows the contract option '" + name + "', which " + op.name + " does not have" +
                       suggestion(name, known));
    }
    for (const std::string& value : values)
      if (!has(option->values, value))
        throw InputError(source + ": it follows the contract option " + name + " as '" + value + "', which is none of " +
                         listed(option->values));
  }
}

void check_tensors(const Declaration& declaration, const Op& op, const std::string& source) {
  if (!declaration.tensors) return;
  std::vector<std::string> known;
  for (const TensorSpec& tensor : op.tensors) known.push_back(tensor.name);
  for (const std::string& name : *declaration.tensors)
    if (!has(known, name))
      throw InputError(source + ": it knows the tensor '" + name + "', which " + op.name + " does not have" +
                       suggestion(name, known));
}

// `whose` begins the sentence: "lib:mine.so: its requirement".
void check_requirements(const std::vector<Requirement>& requirements, const Op& op, const std::string& whose) {
  std::vector<std::string> terms = terms_of(op);
  for (std::string& term : layout_terms_of(op)) terms.push_back(std::move(term));
  for (const Requirement& requirement : requirements) {
    for (const std::string& name : requirement.that.names()) {
      if (is_term(op, terms, name)) continue;
      const std::string begin = whose + " \"" + requirement.that.text() + "\" names '" + name + "', which ";
      if (op.param(name) != nullptr) throw InputError(begin + "is no whole number or choice");
      throw InputError(begin + op.name + " does not have" + suggestion(name, terms));
    }
  }
}

}  // namespace

const Op& op_of_kernel(const std::string& name, const Ops& ops, const std::string& source) {
  const auto found = ops.find(name);
  if (found == ops.end()) {
    std::vector<std::string> known;
    for (const auto& [each, op] : ops) known.push_back(each);
    const std::string near = nearest_name(name, known);
    throw InputError(source + ": it is a kernel of the op '" + name + "', which there is not" +
                     (near.empty() ? "; dcpcheck ops shows them" : ": did you mean " + near + "?"));
  }
  if (!found->second.pipeline.empty())
    throw InputError(source + ": it is a kernel of " + name + ", which is a pipeline: a kernel is of one of its ops");
  return found->second;
}

void apply_preset(Declaration& declaration, const Op& op, const std::string& source) {
  if (declaration.preset.empty()) return;
  const Preset* const preset = op.preset(declaration.preset);
  if (preset == nullptr) {
    std::vector<std::string> known;
    for (const Preset& each : op.presets) known.push_back(each.name);
    throw InputError(source + ": it follows the preset '" + declaration.preset + "', which " + op.name + " does not have" +
                     (known.empty() ? ": it has no presets" : ": it has " + list_of(known)));
  }
  declaration.options.insert(preset->options.begin(), preset->options.end());
  declaration.requirements.insert(declaration.requirements.begin(), preset->requirements.begin(), preset->requirements.end());
}

void check_expressions(const Op& op, const std::string& source) {
  const std::vector<std::string> terms = terms_of(op);
  const auto check = [&](const Expression& expression, const std::string& of, bool each_group = false) {
    if (expression.empty()) return;
    const std::string begin = source + ": of " + of + ", the expression \"" + expression.text() + "\" ";
    try {
      if (expression.names().empty()) static_cast<void>(expression.evaluate({}));
    } catch (const InputError& error) {
      throw InputError(source + ": of " + of + ", " + error.what());
    }
    for (const std::string& name : expression.names()) {
      if (is_term(op, terms, name) || (each_group && name.starts_with("group.") && has(kOfGroup, name.substr(6)))) continue;
      if (op.param(name) != nullptr) throw InputError(begin + "names '" + name + "', which is no whole number or choice");
      throw InputError(begin + "names '" + name + "', which " + op.name + " does not have" + suggestion(name, terms));
    }
  };
  for (const Requirement& rule : op.require) check(rule.that, "/require");
  for (const TensorSpec& tensor : op.tensors) {
    check(tensor.dtype, tensor.name, tensor.per_group);
    for (const Expression& extent : tensor.shape) check(extent, tensor.name, tensor.per_group);
    for (const Expression* each : {&tensor.when, &tensor.unjudged, &tensor.in_place_when})
      check(*each, tensor.name, tensor.per_group);
    for (const Record& record : tensor.records) {
      check(record.when, tensor.name);
      for (const Field& field : record.fields) {
        check(field.count, tensor.name + "." + field.name);
        check(field.tile, tensor.name + "." + field.name);
      }
    }
  }
  for (const Preset& preset : op.presets)
    check_requirements(preset.requirements, op, source + ": of its preset " + preset.name + ", the requirement");
}

void check_declaration(const Declaration& declaration, const Op& op, const std::string& source) {
  check_options(declaration, op, source);
  check_tensors(declaration, op, source);
  check_requirements(declaration.requirements, op, source + ": its requirement");
}

std::string why_not(const Declaration& declaration, const Plan& plan) {
  for (const Option& option : plan.op->contract) {
    const auto followed = declaration.options.find(option.name);
    const std::vector<std::string> fallback{option.values.front()};
    const std::vector<std::string>& values = followed == declaration.options.end() ? fallback : followed->second;
    const std::string& wanted = plan.value.option(option.name);
    if (!has(values, wanted))
      return "it follows the contract option " + option.name + " as " + listed(values) + ", and the case has " + wanted;
  }
  if (declaration.tensors) {
    for (const TensorPlan& tensor : plan.tensors)
      if (!has(*declaration.tensors, tensor.spec->name))
        return "it does not know the tensor " + tensor.name + ", which the case has";
  }
  if (declaration.requirements.empty()) return "";
  const Environment environment = with_layout(plan);
  for (const Requirement& requirement : declaration.requirements) {
    try {
      if (requirement.that.truth(environment)) continue;
    } catch (const InputError& error) {
      return "its requirement cannot be worked out for the case: " + std::string(error.what());
    }
    return "it requires " + (requirement.say.empty() ? requirement.that.text() : requirement.say);
  }
  return "";
}

}  // namespace dcpcheck
