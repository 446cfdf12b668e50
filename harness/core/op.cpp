#include "harness/core/op.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/core/error.hpp"
#include "harness/core/inputs.hpp"
#include "harness/core/reader.hpp"

namespace dcpcheck {
namespace {

// Reads an expression, so that its own errors name where it stands.
Expression expression(const Reader& reader) {
  try {
    return Expression(reader.string());
  } catch (const InputError& error) {
    reader.fail(error.what());
  }
}

std::string text_or(const Reader& object, std::string_view key, std::string fallback) {
  const auto found = object.find(key);
  return found ? found->string() : std::move(fallback);
}

bool flag_or(const Reader& object, std::string_view key, bool fallback) {
  const auto found = object.find(key);
  return found ? found->boolean() : fallback;
}

Expression expression_or_empty(const Reader& object, std::string_view key) {
  const auto found = object.find(key);
  return found ? expression(*found) : Expression();
}

std::vector<std::string> strings(const Reader& array) {
  std::vector<std::string> out;
  for (const Reader& element : array.elements()) out.push_back(element.string());
  return out;
}

float fp32(const Reader& reader, float least, float most) {
  const auto value = static_cast<float>(reader.number());
  if (!(value >= least && value <= most))
    reader.fail("a number from " + std::to_string(least) + " to " + std::to_string(most) + " is needed");
  return value;
}

ParamValue param_value(const Param& param, const Reader& reader) {
  switch (param.kind) {
    case Param::Kind::flag: return reader.boolean();
    case Param::Kind::integer: return reader.integer(param.min, param.max);
    case Param::Kind::number: return fp32(reader, param.least, param.most);
    case Param::Kind::choice: return reader.one_of(param.choices);
  }
  reader.fail("its param has no kind");
}

Param read_param(const std::string& name, const Reader& reader) {
  reader.object({"type", "doc", "default", "plainest", "prefer", "min", "max", "values"});
  Param param;
  param.name = name;
  param.doc = text_or(reader, "doc", "");
  const std::string type = reader.at("type").one_of({"flag", "integer", "number", "choice"});
  if (type == "flag") param.kind = Param::Kind::flag;
  if (type == "integer") {
    param.kind = Param::Kind::integer;
    constexpr std::int64_t exact = (std::int64_t{1} << 53) - 1;  // what a JSON number keeps in every reader
    param.min = reader.at("min").integer(-exact, exact);
    param.max = reader.at("max").integer(param.min, exact);
  }
  if (type == "number") {
    param.kind = Param::Kind::number;
    param.least = static_cast<float>(reader.at("min").number());
    param.most = static_cast<float>(reader.at("max").number());
  }
  if (type == "choice") {
    param.kind = Param::Kind::choice;
    param.choices = strings(reader.at("values"));
    if (param.choices.empty()) reader.at("values").fail("a choice needs at least one value");
  }
  param.value = param_value(param, reader.at("default"));
  const auto plainest = reader.find("plainest");
  param.plainest = plainest ? param_value(param, *plainest) : param.value;
  if (const auto prefer = reader.find("prefer")) {
    for (const Reader& element : prefer->elements()) param.prefer.push_back(param_value(param, element));
  }
  return param;
}

// Integers are told exactly, and floats by value and error, where it is not said.
Told read_told(const Reader& object, bool integers) {
  const auto found = object.find("told");
  if (!found) return integers ? Told::exact : Told::value;
  const std::string told = found->one_of({"value", "range", "exact"});
  if (integers && told != "exact") found->fail("integers are told by \"exact\"");
  return told == "value" ? Told::value : told == "range" ? Told::range : Told::exact;
}

Record read_record(const Reader& reader) {
  reader.object({"when", "planar", "fields"});
  Record record;
  record.when = expression_or_empty(reader, "when");
  record.planar = flag_or(reader, "planar", false);
  std::set<std::string> names;
  for (const Reader& element : reader.at("fields").elements()) {
    element.object({"name", "dtype", "count", "scaled_by", "tile", "told"});
    Field field;
    field.name = element.at("name").string();
    if (!names.insert(field.name).second) element.at("name").fail("another field of the record is called that");
    field.dtype = dtype_named(element.at("dtype").one_of({"u8", "bf16", "e4m3", "fp32", "i32", "i64"}));
    field.count = expression(element.at("count"));
    field.told = read_told(element, !is_float(field.dtype));
    field.scaled_by = text_or(element, "scaled_by", "");
    if (!field.scaled_by.empty()) field.tile = expression(element.at("tile"));
    if (!field.scaled_by.empty() && field.told == Told::range)
      element.at("told").fail(R"(codes that are divided by a scale are told by "value", before the division, or "exact")");
    record.fields.push_back(std::move(field));
  }
  if (record.fields.empty()) reader.at("fields").fail("a record needs at least one field");
  return record;
}

TensorSpec read_tensor(const Reader& reader) {
  reader.object({"name",    "doc",          "role",      "dtype",   "shape", "when",     "values",      "recipe_settable",
                 "strided", "per_rank",     "per_group", "bounded", "rows",  "unjudged", "in_place_of", "in_place_when",
                 "cache",   "slot_mapping", "records",   "told"});
  TensorSpec tensor;
  tensor.name = reader.at("name").string();
  tensor.doc = text_or(reader, "doc", "");
  const std::string role = reader.at("role").one_of({"in", "out", "cache"});
  tensor.role = role == "in" ? Role::in : role == "out" ? Role::out : Role::cache;
  tensor.when = expression_or_empty(reader, "when");
  if (tensor.role == Role::cache || (tensor.role == Role::in && reader.find("cache"))) {
    tensor.cache = reader.at("cache").string();
    if (tensor.role == Role::cache) tensor.slot_mapping = reader.at("slot_mapping").string();
    tensor.per_rank = tensor.role == Role::in;
    tensor.bounded = tensor.role == Role::in;  // its blocks are found through a table
    for (const Reader& element : reader.at("records").elements()) tensor.records.push_back(read_record(element));
    return tensor;
  }
  tensor.dtype = expression(reader.at("dtype"));
  for (const Reader& element : reader.at("shape").elements()) tensor.shape.push_back(expression(element));
  if (tensor.shape.empty()) reader.at("shape").fail("a tensor needs at least one axis");
  tensor.strided = flag_or(reader, "strided", false);
  if (tensor.role == Role::in) {
    tensor.values = reader.at("values").string();
    try {
      check_recipe(tensor.values);
    } catch (const InputError& error) {
      reader.at("values").fail(error.what());
    }
    tensor.recipe_settable = flag_or(reader, "recipe_settable", false);
    tensor.per_rank = flag_or(reader, "per_rank", false);
    tensor.per_group = flag_or(reader, "per_group", false);
    tensor.bounded = flag_or(reader, "bounded", false);
    return tensor;
  }
  const std::string rows = reader.at("rows").one_of({"all", "live", "slots", "gathered"});
  tensor.rows = rows == "all" ? Rows::all : rows == "live" ? Rows::live : rows == "slots" ? Rows::slots : Rows::gathered;
  if (tensor.rows == Rows::slots && tensor.shape.size() != 2)
    reader.at("shape").fail("rows \"slots\" needs [groups, capacity]");
  tensor.unjudged = expression_or_empty(reader, "unjudged");
  // Its dtype may be a choice of the case's: of these, a name in quotes alone is known to be one of integers.
  const std::string& dtype = tensor.dtype.text();
  tensor.told = read_told(reader, dtype == "'u8'" || dtype == "'i32'" || dtype == "'i64'");
  tensor.in_place_of = text_or(reader, "in_place_of", "");
  if (!tensor.in_place_of.empty()) tensor.in_place_when = expression(reader.at("in_place_when"));
  return tensor;
}

// The op's params and contract are read already.
Preset read_preset(const Op& op, const std::string& name, const Reader& reader) {
  reader.object({"doc", "contract", "requirements"});
  Preset preset;
  preset.name = name;
  preset.doc = text_or(reader, "doc", "");
  if (const auto contract = reader.find("contract")) {
    for (const auto& [followed, values] : contract->members()) {
      const Option* const option = op.option(followed);
      if (option == nullptr) values.fail("there is no such option in /contract");
      for (const Reader& value : values.elements()) preset.options[followed].push_back(value.one_of(option->values));
      if (preset.options[followed].empty()) values.fail("an option is followed as at least one of its values");
    }
  }
  if (const auto requirements = reader.find("requirements")) {
    for (const Reader& rule : requirements->elements()) {
      rule.object({"that", "say"});
      preset.requirements.push_back({expression(rule.at("that")), text_or(rule, "say", "")});
    }
  }
  return preset;
}

}  // namespace

const Param* Op::param(std::string_view wanted) const {
  const auto found = std::find_if(params.begin(), params.end(), [&](const Param& p) { return p.name == wanted; });
  return found == params.end() ? nullptr : &*found;
}

const Option* Op::option(std::string_view wanted) const {
  const auto found = std::find_if(contract.begin(), contract.end(), [&](const Option& o) { return o.name == wanted; });
  return found == contract.end() ? nullptr : &*found;
}

const Preset* Op::preset(std::string_view wanted) const {
  const auto found = std::find_if(presets.begin(), presets.end(), [&](const Preset& p) { return p.name == wanted; });
  return found == presets.end() ? nullptr : &*found;
}

const TensorSpec* Op::tensor(std::string_view wanted) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const TensorSpec& t) { return t.name == wanted; });
  return found == tensors.end() ? nullptr : &*found;
}

Op op_from_json(const json::Value& document, const std::string& source) {
  const Reader reader(document, source);
  reader.object({"schema", "name", "version", "doc", "geometry", "caches", "rank_reference", "pipeline", "reference", "laws",
                 "params", "require", "contract", "presets", "tensors"});
  reader.at("schema").one_of({"dcpcheck.op/1"});
  Op op;
  op.source = document;
  op.name = reader.at("name").string();
  op.version = static_cast<int>(reader.at("version").integer(1, 1'000'000));
  op.doc = text_or(reader, "doc", "");
  for (const Reader& field : reader.at("geometry").elements()) {
    op.geometry.push_back(field.one_of({"batch", "padding", "max_batched_tokens", "tp", "dcp", "caches", "chunk"}));
  }
  op.caches = strings(reader.at("caches"));
  op.rank_reference = flag_or(reader, "rank_reference", false);
  if (const auto pipeline = reader.find("pipeline")) op.pipeline = strings(*pipeline);
  op.reference = text_or(reader, "reference", "");
  if (const auto laws = reader.find("laws")) op.laws = strings(*laws);
  for (const auto& [name, member] : reader.at("params").members()) op.params.push_back(read_param(name, member));
  for (const Reader& rule : reader.at("require").elements()) {
    rule.object({"that", "say"});
    op.require.push_back({expression(rule.at("that")), rule.at("say").string()});
  }
  for (const auto& [name, member] : reader.at("contract").members()) {
    member.object({"values", "doc"});
    Option option{name, text_or(member, "doc", ""), strings(member.at("values"))};
    if (option.values.empty()) member.at("values").fail("an option needs at least one value");
    // Where kernels declare what they follow, a preset is named as if it were an option (dcpcheck_kernel.h).
    if (name == kPreset) member.fail("an option cannot be called \"preset\": kernels name presets so");
    op.contract.push_back(std::move(option));
  }
  if (const auto presets = reader.find("presets"))
    for (const auto& [name, member] : presets->members()) op.presets.push_back(read_preset(op, name, member));
  std::set<std::string> names;
  for (const Reader& element : reader.at("tensors").elements()) {
    op.tensors.push_back(read_tensor(element));
    if (!names.insert(op.tensors.back().name).second) element.at("name").fail("another tensor is called that");
  }
  for (const TensorSpec& tensor : op.tensors) {
    for (const std::string& other : {tensor.in_place_of, tensor.slot_mapping}) {
      const TensorSpec* input = other.empty() ? nullptr : op.tensor(other);
      if (!other.empty() && (!input || input->role != Role::in)) {
        reader.at("tensors").fail("\"" + tensor.name + "\" refers to \"" + other + "\", which is no input");
      }
    }
  }
  return op;
}

}  // namespace dcpcheck
