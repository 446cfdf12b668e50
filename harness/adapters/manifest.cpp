#include "harness/adapters/manifest.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>

#include "harness/adapters/device_code.hpp"
#include "harness/adapters/invocation.hpp"
#include "harness/core/error.hpp"
#include "harness/core/reader.hpp"

namespace dcpcheck {
namespace {

namespace fs = std::filesystem;
using Kind = Binding::Kind;

constexpr std::size_t kMostManifest = std::size_t{16} << 20;
constexpr std::uintmax_t kMostModule = std::uintmax_t{512} << 20;
constexpr std::int64_t kExact = (std::int64_t{1} << 53) - 1;  // what a JSON number keeps in every reader
constexpr std::int64_t kMostBytes = 4096;                     // of a structure: what CUDA takes of parameters in all

const std::vector<std::pair<std::string, ScalarType>> kScalarTypes{{"i8", ScalarType::i8},   {"i16", ScalarType::i16},
                                                                   {"i32", ScalarType::i32}, {"i64", ScalarType::i64},
                                                                   {"f32", ScalarType::f32}, {"f64", ScalarType::f64}};

const std::vector<std::pair<std::string, Kind>> kKinds{
    {"address", Kind::address}, {"stride", Kind::stride},     {"shape", Kind::shape}, {"value", Kind::value},
    {"number", Kind::number},   {"constant", Kind::constant}, {"null", Kind::null},   {"scratch", Kind::scratch},
    {"array", Kind::array},     {"struct", Kind::structure}};

template <class T>
T choice(const Reader& reader, const std::vector<std::pair<std::string, T>>& choices) {
  std::vector<std::string> names;
  names.reserve(choices.size());
  for (const auto& [name, value] : choices) names.push_back(name);
  const std::string chosen = reader.one_of(names);
  return std::find_if(choices.begin(), choices.end(), [&](const auto& each) { return each.first == chosen; })->second;
}

bool flag(const Reader& object, std::string_view key) {
  const auto found = object.find(key);
  return found && found->boolean();
}

// A module's bytes: no text, and larger than a document may be.
std::string module_bytes(const fs::path& path, const std::string& what) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) throw InputError(what + " cannot be read: " + error.message());
  if (size > kMostModule) throw InputError(what + " is larger than " + std::to_string(kMostModule >> 20) + " MiB");
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (!in || bytes.size() != size) throw InputError(what + " cannot be read");
  return bytes;
}

void add_facts(std::vector<std::string>& names, const TensorSpec& tensor) {
  for (std::size_t axis = 0; axis < axes_of(tensor); ++axis) {
    names.push_back(tensor.name + ".shape" + std::to_string(axis));
    names.push_back(tensor.name + ".stride" + std::to_string(axis));
  }
}

// Every name that an expression may ask for.
std::vector<std::string> names_for(const Op& op) {
  std::vector<std::string> names = terms_of(op);
  names.emplace_back("rank");
  for (const TensorSpec& tensor : op.tensors) {
    names.push_back(tensor.name + ".present");
    if (!tensor.per_group) add_facts(names, tensor);
  }
  return names;
}

// What expressions may name in an array, besides: of the group whose turn it is.
std::vector<std::string> names_for_group(const Op& op) {
  std::vector<std::string> names;
  for (const std::string_view term : terms_of_group()) names.push_back("group." + std::string(term));
  for (const TensorSpec& tensor : op.tensors)
    if (tensor.per_group) add_facts(names, tensor);
  return names;
}

class ManifestReader {
 public:
  ManifestReader(const fs::path& path, const Ops& ops, std::string source)
      : folder_(path.parent_path()), ops_(ops), source_(std::move(source)) {}

  Manifest read(const json::Value& document) {
    const Reader reader(document, source_);
    reader.object({"schema", "op", "name", "doc", "preset", "contract", "tensors", "requirements", "values", "variants"});
    static_cast<void>(reader.at("schema").one_of({"dcpcheck.manifest/1"}));
    read_op(reader.at("op"));
    read_declaration(reader);
    if (const auto values = reader.find("values")) {
      for (const auto& [name, value] : values->members()) {
        if (std::find(names_.begin(), names_.end(), name) != names_.end()) value.fail("there is something called that already");
        out_.values.emplace_back(name, expression(value, &name));
        names_.push_back(name);
      }
    }
    const Reader variants = reader.at("variants");
    for (const Reader& variant : variants.elements()) out_.variants.push_back(read_variant(variant));
    if (out_.variants.empty()) variants.fail("a manifest needs at least one variant");
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const Reader& at, const std::string& why) const {
    throw InputError(source_ + ": " + at.pointer() + " " + why);
  }

  void read_op(const Reader& reader) {
    std::vector<std::string> known;
    for (const auto& [name, op] : ops_)
      if (op.pipeline.empty()) known.push_back(name);
    out_.op = &ops_.at(reader.one_of(known));
    names_ = names_for(*out_.op);
    group_names_ = names_for_group(*out_.op);
  }

  void read_declaration(const Reader& reader) {
    Declaration& declared = out_.declared;
    declared.name = reader.at("name").string();
    if (const auto doc = reader.find("doc")) declared.doc = doc->string();
    if (const auto preset = reader.find("preset")) {
      declared.preset = preset->string();
      if (declared.preset.empty()) preset->fail("the name of a preset is needed");
    }
    if (const auto contract = reader.find("contract")) {
      for (const auto& [name, values] : contract->members()) {
        std::vector<std::string>& followed = declared.options[name];
        for (const Reader& value : values.elements()) followed.push_back(value.string());
        if (followed.empty()) values.fail("an option is followed as at least one of its values");
      }
    }
    if (const auto tensors = reader.find("tensors")) {
      declared.tensors.emplace();
      for (const Reader& tensor : tensors->elements()) declared.tensors->push_back(tensor.string());
    }
    if (const auto requirements = reader.find("requirements")) {
      // They may ask for layouts, which a launch's expressions see as strides.
      const std::vector<std::string> layouts = layout_terms_of(*out_.op);
      const std::size_t known = names_.size();
      names_.insert(names_.end(), layouts.begin(), layouts.end());
      for (const Reader& requirement : requirements->elements()) {
        requirement.object({"that", "say"});
        const auto say = requirement.find("say");
        declared.requirements.push_back({expression(requirement.at("that")), say ? say->string() : ""});
      }
      names_.resize(known);
    }
    apply_preset(declared, *out_.op, source_);
    check_declaration(declared, *out_.op, source_);
  }

  // Every name in it is one that a case can have, and what needs no case is worked out now. `defines`: what is being defined.
  Expression expression(const Reader& reader, const std::string* defines = nullptr) const {
    Expression read;
    const auto* const number = reader.value().get<std::int64_t>();
    if (number == nullptr && reader.value().get<std::string>() == nullptr)
      reader.fail("an expression or a whole number is needed");
    try {
      read = Expression(number != nullptr ? std::to_string(*number) : reader.string());
      if (read.names().empty()) static_cast<void>(read.evaluate({}));
    } catch (const InputError& error) {
      fail(reader, "is no expression: " + std::string(error.what()));
    }
    for (const std::string& name : read.names()) {
      if (std::find(names_.begin(), names_.end(), name) != names_.end()) continue;
      if (is_term(*out_.op, names_, name)) continue;
      if (each_group_ && std::find(group_names_.begin(), group_names_.end(), name) != group_names_.end()) continue;
      if (defines != nullptr && name == *defines) fail(reader, "is defined by itself");
      const Param* const param = out_.op->param(name);
      if (param != nullptr) fail(reader, "names '" + name + "', which is no whole number or choice");
      const std::string near = nearest_name(name, names_);
      fail(reader, "names '" + name + "', which neither " + out_.op->name + " nor \"values\" above it has" +
                       (near.empty() ? "" : ": did you mean " + near + "?"));
    }
    return read;
  }
  Expression expression_or_empty(const Reader& object, std::string_view key) const {
    const auto found = object.find(key);
    return found ? expression(*found) : Expression();
  }

  std::array<Expression, 3> extents(const Reader& array) const {
    std::array<Expression, 3> out;
    const std::vector<Reader> elements = array.elements();
    if (elements.empty() || elements.size() > 3) array.fail("one, two or three extents are needed: x, y, z");
    for (std::size_t i = 0; i < elements.size(); ++i) out[i] = expression(elements[i]);
    return out;
  }

  // The tensor called so, or one that there is for each cache group: within an array by its name, else "<name>.<group>".
  const TensorSpec& tensor(const Reader& reader) const {
    const std::string name = reader.string();
    const std::size_t dot = name.find('.');
    const TensorSpec* const spec = out_.op->tensor(name.substr(0, dot));
    std::vector<std::string> known;
    for (const TensorSpec& each : out_.op->tensors) known.push_back(each.name);
    if (spec == nullptr || (dot != std::string::npos && !spec->per_group)) {
      const std::string near = nearest_name(name, known);
      fail(reader, "is '" + name + "', a tensor that " + out_.op->name + " does not have" +
                       (near.empty() ? "" : ": did you mean " + near + "?"));
    }
    if (spec->per_group && dot == std::string::npos && !each_group_)
      fail(reader, "is '" + name + "', of which there is one for each cache group: name \"" + name +
                       ".<group>\", or bind an array of them");
    return *spec;
  }

  // Where a binding stands, which decides what may be there.
  enum class Place : std::uint8_t { parameters, fields, array };

  Binding read_binding(const Reader& reader, Place place = Place::parameters) {
    const Reader bind = reader.at("bind");
    Binding binding;
    binding.kind = choice(bind, kKinds);
    binding.place = reader.pointer();
    if (const auto name = reader.find("name")) binding.place += " (" + name->string() + ")";
    if (place == Place::array && (binding.kind == Kind::scratch || binding.kind == Kind::array))
      bind.fail("this stands within an array, where an address, a number or null is needed");
    if (place != Place::parameters && binding.kind == Kind::structure) bind.fail("only a parameter can be a struct");
    switch (binding.kind) {
      case Kind::address:
        reader.object({"name", "bind", "tensor", "offset", "align", "optional"});
        static_cast<void>(tensor(reader.at("tensor")));
        binding.tensor = reader.at("tensor").string();
        binding.offset = expression_or_empty(reader, "offset");
        if (const auto align = reader.find("align")) binding.alignment = align->integer(1, kMostBytes);
        binding.optional = flag(reader, "optional");
        break;
      case Kind::stride:
      case Kind::shape: {
        reader.object({"name", "bind", "tensor", "axis", "type", "optional"});
        const auto axes = static_cast<std::int64_t>(axes_of(tensor(reader.at("tensor"))));
        binding.tensor = reader.at("tensor").string();
        binding.axis = reader.at("axis").integer(0, axes - 1);
        binding.type = choice(reader.at("type"), kScalarTypes);
        binding.optional = flag(reader, "optional");
        break;
      }
      case Kind::value:
        reader.object({"name", "bind", "value", "type"});
        binding.value = expression(reader.at("value"));
        binding.type = choice(reader.at("type"), kScalarTypes);
        break;
      case Kind::number:
        reader.object({"name", "bind", "param", "type"});
        read_number(reader, binding);
        break;
      case Kind::constant:
        reader.object({"name", "bind", "value", "type"});
        read_constant(reader, binding);
        break;
      case Kind::null: reader.object({"name", "bind"}); break;
      case Kind::scratch:
        reader.object({"name", "bind", "bytes", "zeroed"});
        binding.value = expression(reader.at("bytes"));
        binding.zeroed = flag(reader, "zeroed");
        break;
      case Kind::array:
        reader.object({"name", "bind", "each"});
        each_group_ = true;
        binding.parts.push_back(read_binding(reader.at("each"), Place::array));
        each_group_ = false;
        break;
      case Kind::structure:
        reader.object({"name", "bind", "fields"});
        for (const Reader& field : reader.at("fields").elements()) binding.parts.push_back(read_binding(field, Place::fields));
        if (binding.parts.empty()) reader.at("fields").fail("a struct needs at least one field");
        if (binding.bytes() > kMostBytes) reader.at("fields").fail("a struct of at most 4096 bytes is needed");
        break;
    }
    return binding;
  }

  void read_number(const Reader& reader, Binding& binding) const {
    std::vector<std::string> known;
    for (const Param& param : out_.op->params)
      if (param.kind == Param::Kind::number) known.push_back(param.name);
    const Reader param = reader.at("param");
    if (known.empty()) param.fail(out_.op->name + " has no params that are fp32 numbers");
    binding.param = param.one_of(known);
    binding.type = choice(reader.at("type"), kScalarTypes);
    if (binding.type != ScalarType::f32 && binding.type != ScalarType::f64)
      reader.at("type").fail("an fp32 number is passed as f32 or f64");
  }

  static void read_constant(const Reader& reader, Binding& binding) {
    const Reader value = reader.at("value");
    binding.type = choice(reader.at("type"), kScalarTypes);
    if (binding.type == ScalarType::f32 || binding.type == ScalarType::f64) {
      binding.real = value.number();
      if (binding.type == ScalarType::f32 && std::abs(binding.real) > static_cast<double>(std::numeric_limits<float>::max()))
        value.fail("an f32 is needed");
      return;
    }
    const int bits = static_cast<int>(8 * size_of(binding.type));
    const std::int64_t limit = bits == 64 ? kExact : (std::int64_t{1} << (bits - 1)) - 1;
    binding.integer = value.integer(bits == 64 ? -kExact : -limit - 1, limit);
  }

  Assumption read_assumption(const Reader& reader) const {
    reader.object({"address", "offset", "value", "divisible_by", "equal_to"});
    Assumption assumption;
    if (const auto address = reader.find("address")) {
      if (reader.find("value")) reader.fail(R"(it must have "address" or "value", not both)");
      static_cast<void>(tensor(*address));
      assumption.tensor = address->string();
      assumption.offset = expression_or_empty(reader, "offset");
      assumption.divisible_by = reader.at("divisible_by").integer(1, kExact);
      if (const auto equal = reader.find("equal_to")) equal->fail("an address can only be divisible_by");
      return assumption;
    }
    assumption.value = expression(reader.at("value"));
    const auto divisible = reader.find("divisible_by");
    const auto equal = reader.find("equal_to");
    if (divisible.has_value() == equal.has_value()) reader.fail(R"(it must have "divisible_by" or "equal_to", one of them)");
    if (divisible) assumption.divisible_by = divisible->integer(1, kExact);
    if (equal) assumption.equal_to = equal->integer(-kExact, kExact);
    return assumption;
  }

  // The file's bytes, read once. It lies in the manifest's folder, whatever links lead there.
  const std::string& module(const Reader& reader) {
    const std::string written = reader.string();
    const auto known = out_.modules.find(written);
    if (known != out_.modules.end()) return *known->second;
    const fs::path path(written);
    std::error_code error;
    const fs::path folder = fs::weakly_canonical(folder_.empty() ? "." : folder_, error);
    const fs::path whole = fs::weakly_canonical(folder / path, error);
    const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), whole.begin(), whole.end());
    if (written.empty() || path.is_absolute() || end != folder.end() || rest == whole.end())
      fail(reader, "is '" + written + "', which is no file in the manifest's folder");
    return *out_.modules
                .emplace(written, std::make_shared<const std::string>(
                                      module_bytes(whole, source_ + ": " + reader.pointer() + ": " + written)))
                .first->second;
  }

  // The module's entries; each file is looked into once.
  const std::map<std::string, std::optional<EntryParameters>>& entries(const Reader& reader) {
    const std::string& bytes = module(reader);
    const std::string written = reader.string();
    if (!entries_.contains(written)) {
      try {
        entries_.emplace(written, entries_of(bytes));
      } catch (const InputError& error) {
        fail(reader, "is '" + written + "', a file that " + error.what());
      }
    }
    return entries_.at(written);
  }

  void check_entry(const Reader& reader, const Variant& variant) {
    const auto& known = entries(reader.at("module"));
    const auto found = known.find(variant.entry);
    if (found == known.end()) {
      std::vector<std::string> names;
      names.reserve(known.size());
      for (const auto& [name, parameters] : known) names.push_back(name);
      const std::string near = nearest_name(variant.entry, names);
      fail(reader.at("entry"),
           "is '" + variant.entry + "', a kernel that " + variant.module + " does not have" +
               (near.empty() ? names.empty() ? "" : ": it has " + list_of(names) : ": did you mean " + near + "?"));
    }
    if (!found->second) return;
    const std::string why = parameters_mismatch(variant, found->second->bytes);
    if (!why.empty()) throw InputError(source_ + ": " + why);
  }

  Variant read_variant(const Reader& reader) {
    reader.object({"name", "module", "entry", "when", "requires", "grid", "block", "shared_bytes", "cooperative", "cluster",
                   "programmatic_stream_serialization", "parameters"});
    Variant variant;
    variant.place = reader.pointer();
    variant.name = reader.at("name").string();
    if (!variant_names_.insert(variant.name).second) reader.at("name").fail("another variant is called that");
    variant.module = reader.at("module").string();
    variant.entry = reader.at("entry").string();
    variant.when = expression_or_empty(reader, "when");
    if (const auto assumptions = reader.find("requires"))
      for (const Reader& each : assumptions->elements()) variant.assumptions.push_back(read_assumption(each));
    variant.grid = extents(reader.at("grid"));
    variant.block = extents(reader.at("block"));
    if (const auto cluster = reader.find("cluster")) variant.cluster = extents(*cluster);
    variant.shared_bytes = expression_or_empty(reader, "shared_bytes");
    variant.cooperative = flag(reader, "cooperative");
    variant.programmatic_stream_serialization = flag(reader, "programmatic_stream_serialization");
    const Reader parameters = reader.at("parameters");
    std::int64_t bytes = 0;
    for (const Reader& parameter : parameters.elements()) {
      variant.parameters.push_back(read_binding(parameter));
      bytes += variant.parameters.back().bytes();
    }
    if (bytes > 32764) parameters.fail("parameters of at most 32764 bytes are needed");
    check_constant_extents(reader, variant);
    check_entry(reader, variant);
    return variant;
  }

  // Extents that no case changes are held to CUDA's limits here; the others where a case is launched.
  void check_constant_extents(const Reader& reader, const Variant& variant) const {
    const auto known = [](const std::array<Expression, 3>& extents) {
      std::array<std::int64_t, 3> out{1, 1, 1};
      for (std::size_t i = 0; i < 3; ++i)
        if (!extents[i].empty() && extents[i].names().empty()) out[i] = extents[i].integer({});
      return out;
    };
    const std::string why = refusal_of_extents(known(variant.grid), known(variant.block), {1, 1, 1});
    if (!why.empty()) fail(reader, "cannot be launched: " + why);
  }

  fs::path folder_;
  const Ops& ops_;
  std::string source_;
  Manifest out_;
  std::vector<std::string> names_, group_names_;
  std::set<std::string> variant_names_;
  std::map<std::string, std::map<std::string, std::optional<EntryParameters>>> entries_;
  bool each_group_ = false;  // reading what an array holds for each group
};

}  // namespace

std::int64_t size_of(ScalarType type) {
  switch (type) {
    case ScalarType::i8: return 1;
    case ScalarType::i16: return 2;
    case ScalarType::i32:
    case ScalarType::f32: return 4;
    case ScalarType::i64:
    case ScalarType::f64: return 8;
  }
  return 0;
}

std::int64_t Binding::aligned() const {
  switch (kind) {
    case Kind::stride:
    case Kind::shape:
    case Kind::value:
    case Kind::number:
    case Kind::constant: return size_of(type);
    case Kind::structure: {
      std::int64_t most = 1;
      for (const Binding& field : parts) most = std::max(most, field.aligned());
      return most;
    }
    case Kind::address:
    case Kind::null:
    case Kind::scratch:
    case Kind::array: return 8;
  }
  return 8;
}

std::int64_t Binding::bytes() const {
  if (kind != Kind::structure) return aligned();
  std::int64_t bytes = 0;
  for (const Binding& field : parts) bytes = (bytes + field.aligned() - 1) / field.aligned() * field.aligned() + field.bytes();
  return (bytes + aligned() - 1) / aligned() * aligned();
}

Manifest read_manifest(const std::string& path, const Ops& ops, const std::string& source) {
  constexpr json::Limits limits{kMostManifest, 32};
  const json::Value document = json::parse(json::text_of(path, limits), source, limits);
  return ManifestReader(path, ops, source).read(document);
}

}  // namespace dcpcheck
