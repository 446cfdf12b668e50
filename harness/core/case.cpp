// Cases as JSON: reading, writing, and the id.
#include "harness/core/case.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "harness/core/digest.hpp"
#include "harness/core/error.hpp"
#include "harness/core/reader.hpp"
#include "harness/core/recipe.hpp"
#include "harness/core/verdict.hpp"

namespace dcpcheck {
namespace {

constexpr std::uintmax_t kMostStored = std::uintmax_t{1} << 34;
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 24;
constexpr std::int64_t kExact = (std::int64_t{1} << 53) - 1;  // what a JSON number keeps in every reader

std::string hex16(std::uint64_t value) {
  std::string text(16, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, value >>= 4) *digit = "0123456789abcdef"[value & 15];
  return text;
}

std::uint64_t read_seed(const Reader& reader) {
  const std::string text = reader.string();
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed, 16);
  const bool lower = std::none_of(text.begin(), text.end(), [](unsigned char c) { return std::isupper(c); });
  if (text.size() != 16 || error != std::errc{} || end != text.data() + text.size() || !lower) {
    reader.fail("16 lower-case hex digits are needed");
  }
  return seed;
}

// The double that prints as the shortest decimal of `value`: 1e-06, not 9.999999974752427e-07.
double decimal(float value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  double out = 0;
  std::from_chars(text, end, out);
  return out;
}

json::Value param_json(const ParamValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* number = std::get_if<float>(&value)) return decimal(*number);
  return std::get<std::string>(value);
}

ParamValue read_param_value(const Param& param, const Reader& reader) {
  switch (param.kind) {
    case Param::Kind::flag: return reader.boolean();
    case Param::Kind::integer: return reader.integer(param.min, param.max);
    case Param::Kind::number: {
      const auto value = static_cast<float>(reader.number()) + 0.0F;  // -0 is 0: one value has one id
      if (!(value >= param.least && value <= param.most)) {
        reader.fail("a number from " + json::dump(decimal(param.least)) + " to " + json::dump(decimal(param.most)) +
                    " is needed");
      }
      return value;
    }
    case Param::Kind::choice: return reader.one_of(param.choices);
  }
  reader.fail("its param has no kind");
}

CacheGroup read_group(const Reader& reader) {
  reader.object({"present", "enabled", "block_size", "kernel_block_size", "spare_blocks", "block_stride_padding", "sparse",
                 "slot_mapping", "table_columns", "slots"});
  CacheGroup group;
  if (const auto field = reader.find("enabled")) group.enabled = field->boolean();
  if (const auto field = reader.find("block_size")) group.block_size = field->integer(1, 1 << 20);
  group.kernel_block_size = group.block_size;
  if (const auto field = reader.find("kernel_block_size")) group.kernel_block_size = field->integer(1, 1 << 20);
  if (const auto field = reader.find("sparse")) group.sparse = field->boolean();
  if (const auto field = reader.find("spare_blocks")) group.spare_blocks = field->integer(1, group.sparse ? 1 << 26 : 1 << 20);
  if (const auto field = reader.find("block_stride_padding")) group.block_stride_padding = field->integer(0, 1 << 24);
  if (const auto field = reader.find("table_columns")) group.table_columns = field->integer(0, 1 << 24);
  if (const auto field = reader.find("slot_mapping")) {
    group.slot_mapping = field->one_of({"dcp", "replicated", "random", "explicit", "none", "same"});
  }
  if (const auto field = reader.find("slots")) {
    for (const Reader& rank : field->elements()) {
      group.slots.emplace_back();
      for (const Reader& slot : rank.elements()) group.slots.back().push_back(slot.integer(-kExact, kExact));
    }
  }
  return group;
}

json::Value group_json(const CacheGroup& group) {
  const CacheGroup plain;
  json::Object out;
  if (group.enabled != plain.enabled) out.emplace_back("enabled", group.enabled);
  if (group.block_size != plain.block_size) out.emplace_back("block_size", group.block_size);
  if (group.kernel_block_size != group.block_size) out.emplace_back("kernel_block_size", group.kernel_block_size);
  if (group.spare_blocks != plain.spare_blocks) out.emplace_back("spare_blocks", group.spare_blocks);
  if (group.block_stride_padding != 0) out.emplace_back("block_stride_padding", group.block_stride_padding);
  if (group.sparse) out.emplace_back("sparse", true);
  if (group.table_columns != 0) out.emplace_back("table_columns", group.table_columns);
  if (group.slot_mapping != plain.slot_mapping) out.emplace_back("slot_mapping", group.slot_mapping);
  if (!group.slots.empty()) {
    json::Array ranks;
    for (const auto& slots : group.slots) {
      json::Array list;
      for (const std::int64_t slot : slots) list.emplace_back(slot);
      ranks.emplace_back(std::move(list));
    }
    out.emplace_back("slots", std::move(ranks));
  }
  return out;
}

// The recipe with its number in the shortest spelling: "normal:1.0" and "normal:1" have one id.
std::string spelt(const std::string& recipe) {
  const std::size_t colon = recipe.find(':');
  if (colon == std::string::npos || recipe.starts_with("stored:")) return recipe;
  double number = 0;
  const char* begin = recipe.data() + colon + 1;
  const char* end = recipe.data() + recipe.size();
  if (const auto [stop, error] = std::from_chars(begin, end, number); error != std::errc{} || stop != end) return recipe;
  char text[32];
  const auto [stop, error] = std::to_chars(text, text + sizeof text, number + 0.0);
  return error == std::errc{} ? recipe.substr(0, colon + 1) + std::string(text, stop) : recipe;
}

// A recipe of values: those of the geometry (positions, slots, …) follow from it and are not a case's to choose.
std::string read_recipe(const Reader& reader) {
  std::string text = reader.string();
  try {
    if (!parse_recipe(text).of_geometry()) return spelt(text);
  } catch (const InputError& error) {
    reader.fail(error.what());
  }
  reader.fail("a recipe of values is needed");
}

Padding read_padding(const Reader& reader) {
  reader.object({"tokens", "slots", "positions", "values"});
  Padding padding;
  if (const auto field = reader.find("tokens")) padding.tokens = field->integer(0, kMaxTokens);
  if (const auto field = reader.find("slots")) padding.slots = field->one_of({"-1", "-block", "int32_min", "int64_min"});
  if (const auto field = reader.find("positions")) padding.positions = field->one_of({"in_range", "zero", "stale"});
  if (const auto field = reader.find("values")) {
    padding.values = read_recipe(*field);
    if (parse_recipe(padding.values).kind == Recipe::Kind::stored)
      field->fail("what is stored of a tensor has its padding rows in it: a recipe of another kind is needed");
  }
  return padding;
}

Geometry read_geometry(const Op& op, const Reader& reader) {
  reader.object(op.geometry);
  Geometry geometry;
  if (const auto batch = reader.find("batch")) {
    for (const Reader& element : batch->elements()) {
      element.object({"cached", "uncached"});
      Request request;
      if (const auto field = element.find("cached")) request.cached = field->integer(0, std::int64_t{1} << 31);
      if (const auto field = element.find("uncached")) request.uncached = field->integer(0, kMaxTokens);
      geometry.batch.push_back(request);
    }
  }
  if (const auto field = reader.find("padding")) geometry.padding = read_padding(*field);
  if (const auto field = reader.find("max_batched_tokens")) geometry.max_batched_tokens = field->integer(0, kMaxTokens);
  if (const auto field = reader.find("tp")) geometry.tp = field->integer(1, 1024);
  if (const auto dcp = reader.find("dcp")) {
    dcp->object({"world_size", "interleave"});
    if (const auto field = dcp->find("world_size")) geometry.world_size = field->integer(1, 1024);
    if (const auto field = dcp->find("interleave")) geometry.interleave = field->integer(1, 1 << 20);
  }
  if (const auto chunk = reader.find("chunk")) {
    chunk->object({"start", "tokens"});
    if (const auto field = chunk->find("start")) geometry.chunk.start = field->integer(0, std::int64_t{1} << 31);
    if (const auto field = chunk->find("tokens")) geometry.chunk.tokens = field->integer(0, std::int64_t{1} << 31);
  }
  if (const auto caches = reader.find("caches")) {
    if (op.caches != std::vector<std::string>{"*"}) caches->object(op.caches);
    for (const auto& [name, member] : caches->members()) {
      const auto present = member.find("present");
      const CacheGroup group = read_group(member);
      const bool word = !name.empty() && name.size() <= 64 &&
                        std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
      if (!word) member.fail("a cache group's name is 1 to 64 letters, digits and _");
      if (!present || present->boolean()) geometry.caches[name] = group;
    }
    if (geometry.caches.size() > 16) caches->fail("at most 16 cache groups are allowed");
  }
  return geometry;
}

json::Value geometry_json(const Geometry& geometry) {
  const Padding plain;
  json::Object out;
  json::Array batch;
  for (const Request& request : geometry.batch) {
    json::Object element;
    if (request.cached != 0) element.emplace_back("cached", request.cached);
    if (request.uncached != 0) element.emplace_back("uncached", request.uncached);
    batch.emplace_back(std::move(element));
  }
  if (!batch.empty()) out.emplace_back("batch", std::move(batch));
  json::Object padding;
  if (geometry.padding.tokens != plain.tokens) padding.emplace_back("tokens", geometry.padding.tokens);
  if (geometry.padding.slots != plain.slots) padding.emplace_back("slots", geometry.padding.slots);
  if (geometry.padding.positions != plain.positions) padding.emplace_back("positions", geometry.padding.positions);
  if (geometry.padding.values != plain.values) padding.emplace_back("values", geometry.padding.values);
  if (!padding.empty()) out.emplace_back("padding", std::move(padding));
  if (geometry.max_batched_tokens != 0) out.emplace_back("max_batched_tokens", geometry.max_batched_tokens);
  if (geometry.tp != 1) out.emplace_back("tp", geometry.tp);
  json::Object dcp;
  if (geometry.world_size != 1) dcp.emplace_back("world_size", geometry.world_size);
  if (geometry.interleave != 1) dcp.emplace_back("interleave", geometry.interleave);
  if (!dcp.empty()) out.emplace_back("dcp", std::move(dcp));
  json::Object chunk;
  if (geometry.chunk.start != 0) chunk.emplace_back("start", geometry.chunk.start);
  if (geometry.chunk.tokens != 0) chunk.emplace_back("tokens", geometry.chunk.tokens);
  if (!chunk.empty()) out.emplace_back("chunk", std::move(chunk));
  json::Object caches;
  for (const auto& [name, group] : geometry.caches) caches.emplace_back(name, group_json(group));
  if (!caches.empty()) out.emplace_back("caches", std::move(caches));
  return out;
}

RowLayout read_layout(const Reader& reader) {
  reader.object({"stride", "offset"});
  RowLayout layout;
  if (const auto field = reader.find("stride")) layout.stride = field->integer(0, std::int64_t{1} << 32);
  if (const auto field = reader.find("offset")) layout.offset = field->integer(0, std::int64_t{1} << 32);
  return layout;
}

std::vector<std::string> names_where(const Op& op, bool TensorSpec::*property) {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : op.tensors) {
    if (tensor.*property) names.push_back(tensor.name);
  }
  return names;
}

std::vector<std::string> op_names(const Ops& ops) {
  std::vector<std::string> names;
  for (const auto& [name, op] : ops) names.push_back(name);
  return names;
}

// What a case comes to on each fault; reasons and buffers by their names, so that a slip in one is no expectation.
void check_expect(const Ops& ops, const Op& op, const Reader& reader) {
  std::vector<std::string> reasons, buffers;
  for (int reason = 0; reason <= static_cast<int>(Reason::nothing_compared); ++reason) {
    reasons.emplace_back(name_of(static_cast<Reason>(reason)));
  }
  const auto add = [&](const Op& one) {
    for (const TensorSpec& tensor : one.tensors) {
      if (std::find(buffers.begin(), buffers.end(), tensor.name) == buffers.end()) buffers.push_back(tensor.name);
    }
  };
  add(op);
  for (const std::string& part : op.pipeline)
    if (const auto found = ops.find(part); found != ops.end()) add(found->second);
  for (const auto& [fault, expectation] : reader.members()) {
    expectation.object({"status", "reasons", "buffers"});
    expectation.at("status").one_of({"pass", "fail", "crash", "hang", "skipped"});
    for (const auto& [list, known] : {std::pair("reasons", &reasons), std::pair("buffers", &buffers)}) {
      if (const auto names = expectation.find(list)) {
        for (const Reader& name : names->elements()) static_cast<void>(name.one_of(*known));
      }
    }
  }
}

}  // namespace

bool Case::flag(std::string_view param) const { return std::get<bool>(params.at(std::string(param))); }
std::int64_t Case::integer(std::string_view param) const { return std::get<std::int64_t>(params.at(std::string(param))); }
float Case::number(std::string_view param) const { return std::get<float>(params.at(std::string(param))); }
const std::string& Case::choice(std::string_view param) const { return std::get<std::string>(params.at(std::string(param))); }
const std::string& Case::option(std::string_view name) const { return contract.at(std::string(name)); }

json::Value case_to_json(const Op& op, const Case& value) {
  json::Object out{{"op", value.op}, {"seed", hex16(value.seed)}};
  const json::Value geometry = geometry_json(value.geometry);
  if (!geometry.get<json::Object>()->empty()) out.emplace_back("geometry", geometry);
  json::Object params, contract, layout, values;
  for (const Param& param : op.params) {
    const auto found = value.params.find(param.name);
    if (found != value.params.end() && found->second != param.value) params.emplace_back(param.name, param_json(found->second));
  }
  for (const Option& option : op.contract) {
    const auto found = value.contract.find(option.name);
    if (found != value.contract.end() && found->second != option.values.front())
      contract.emplace_back(option.name, found->second);
  }
  for (const auto& [tensor, rows] : value.layout) {
    json::Object element;
    if (rows.stride != 0) element.emplace_back("stride", rows.stride);
    if (rows.offset != 0) element.emplace_back("offset", rows.offset);
    if (!element.empty()) layout.emplace_back(tensor, std::move(element));
  }
  for (const auto& [tensor, recipe] : value.values) {
    const TensorSpec* spec = op.tensor(tensor);
    if (!spec || spec->values != recipe) values.emplace_back(tensor, recipe);
  }
  if (!params.empty()) out.emplace_back("params", std::move(params));
  if (!contract.empty()) out.emplace_back("contract", std::move(contract));
  if (!layout.empty()) out.emplace_back("layout", std::move(layout));
  if (!values.empty()) out.emplace_back("values", std::move(values));
  if (value.graph) out.emplace_back("launch", json::Object{{"graph", true}});
  return out;
}

std::string case_id(const Op& op, const Case& value) {
  return sha256_hex(json::canonical(case_to_json(op, value))).substr(0, 16);
}

Case case_from_json(const Ops& ops, const json::Value& document, const std::string& source, const std::string& pointer) {
  const Reader reader(document, source, pointer);
  reader.object({"op", "seed", "geometry", "params", "contract", "layout", "values", "launch"});
  const auto found = ops.find(reader.at("op").string());
  if (found == ops.end()) {
    const std::string near = nearest_name(reader.at("op").string(), op_names(ops));
    reader.at("op").fail("no op is called that; " +
                         (near.empty() ? "the ops are " + list_of(op_names(ops)) : "did you mean \"" + near + "\"?"));
  }
  const Op& op = found->second;
  Case value;
  value.op = op.name;
  if (const auto field = reader.find("seed")) value.seed = read_seed(*field);
  if (const auto field = reader.find("geometry")) value.geometry = read_geometry(op, *field);
  for (const Param& param : op.params) value.params[param.name] = param.value;
  if (const auto params = reader.find("params")) {
    std::vector<std::string> known;
    for (const Param& param : op.params) known.push_back(param.name);
    params->object(known);
    for (const auto& [name, member] : params->members()) value.params[name] = read_param_value(*op.param(name), member);
  }
  for (const Option& option : op.contract) value.contract[option.name] = option.values.front();
  if (const auto contract = reader.find("contract")) {
    std::vector<std::string> known;
    for (const Option& option : op.contract) known.push_back(option.name);
    contract->object(known);
    for (const auto& [name, member] : contract->members()) value.contract[name] = member.one_of(op.option(name)->values);
  }
  if (const auto layout = reader.find("layout")) {
    std::vector<std::string> known;
    for (const std::string& name : names_where(op, &TensorSpec::strided)) {
      if (!op.tensor(name)->per_group) known.push_back(name);
      for (const auto& [group, unused] : value.geometry.caches) {
        if (op.tensor(name)->per_group) known.push_back(name + "." + group);
      }
    }
    layout->object(known);
    for (const auto& [name, member] : layout->members()) {
      const RowLayout rows = read_layout(member);
      if (rows != RowLayout{}) value.layout[name] = rows;
    }
  }
  if (const auto values = reader.find("values")) {
    values->object(names_where(op, &TensorSpec::recipe_settable));
    for (const auto& [name, member] : values->members()) {
      const std::string recipe = read_recipe(member);
      if (recipe != op.tensor(name)->values) value.values[name] = recipe;
    }
  }
  if (const auto launch = reader.find("launch")) {
    launch->object({"graph"});
    if (const auto field = launch->find("graph")) value.graph = field->boolean();
  }
  validate(op, value, pointer.empty() ? source : source + ": " + pointer);
  return value;
}

CaseFile parse_case_file(const Ops& ops, std::string_view text, const std::string& path) {
  const json::Value document = json::parse(text, path);
  const Reader reader(document, path);
  reader.object({"schema", "name", "source", "expect", "case", "finding"});  // "finding": how a campaign came by it
  reader.at("schema").one_of({"dcpcheck.case/1"});
  CaseFile file;
  file.path = path;
  if (const auto field = reader.find("name")) file.name = field->string();
  if (const auto field = reader.find("source")) file.source = field->string();
  file.value = case_from_json(ops, reader.at("case").value(), path, "/case");
  if (const auto field = reader.find("expect")) {
    check_expect(ops, ops.at(file.value.op), *field);
    file.expect = field->value();
  }
  return file;
}

void read_stored(Case& value, const std::string& folder, const std::string& source) {
  for (const auto& [tensor, text] : value.values) {
    const Recipe recipe = parse_recipe(text);
    if (recipe.kind != Recipe::Kind::stored || value.stored.contains(recipe.argument)) continue;
    const std::string path = (std::filesystem::path(folder) / (recipe.argument + ".bin")).string();
    const std::string place = source + ": /case/values/" + tensor + ": " + path;
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    if (error) throw InputError(place + " could not be read: " + error.message());
    if (size > kMostStored) throw InputError(place + " has " + std::to_string(size) + " bytes, too many for an input");
    auto bytes = std::make_shared<std::vector<std::byte>>(size);
    std::ifstream file(path, std::ios::binary);
    file.read(reinterpret_cast<char*>(bytes->data()), static_cast<std::streamsize>(size));
    if (!file || file.gcount() != static_cast<std::streamsize>(size)) throw InputError(place + " could not be read");
    if (Sha256().add(*bytes).hex() != recipe.argument)
      throw InputError(place + " does not hold what its name, a SHA-256, says");
    value.stored[recipe.argument] = {std::move(bytes)};
  }
}

CaseFile load_case_file(const Ops& ops, const std::string& path) {
  CaseFile file = parse_case_file(ops, json::text_of(path), path);
  read_stored(file.value, std::filesystem::path(path).parent_path().string(), path);
  return file;
}

}  // namespace dcpcheck
