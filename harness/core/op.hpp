// An op, as a value: what a kernel is to do. Built-in ops and users' own have this one type and one file format
// (op.json, reports/schema/op.schema.json); write sets, validation, inputs and reports follow from it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/core/dtype.hpp"
#include "harness/core/expression.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {

// A param's value: a flag, a size, an fp32 number, or a choice. Numbers are kept as fp32: what a kernel is given.
using ParamValue = std::variant<bool, std::int64_t, float, std::string>;

struct Param {
  enum class Kind : std::uint8_t { flag, integer, number, choice };
  std::string name, doc;
  Kind kind = Kind::integer;
  ParamValue value;                  // where a case does not say
  ParamValue plainest;               // what shrinking goes to
  std::vector<ParamValue> prefer;    // what a generator likes to draw
  std::int64_t min = 0, max = 0;     // integer
  float least = 0, most = 0;         // number
  std::vector<std::string> choices;  // choice
};

// A rule that joins several params or sizes. `that` must be true; `say` is the sentence shown where it is not, with
// {name} standing for the value of a name.
struct Requirement {
  Expression that;
  std::string say;
};

// A point in which right kernels differ. The first value is the default.
struct Option {
  std::string name, doc;
  std::vector<std::string> values;
};

// What a kernel names a preset by, where it declares which contract options it follows.
inline constexpr std::string_view kPreset = "preset";

// What a public generation of the op's kernels has in common, under a name that a kernel can declare itself by.
struct Preset {
  std::string name, doc;
  std::map<std::string, std::vector<std::string>> options;  // by contract option: the values that it follows
  std::vector<Requirement> requirements;                    // what must hold of a case; `say` may be empty
};

enum class Role : std::uint8_t { in, out, cache };

// Which rows of an output must hold a result.
enum class Rows : std::uint8_t {
  all,       // every element
  live,      // rows of live tokens (axis 0); rows of padding tokens may be written, rows from T on must not
  slots,     // [groups, capacity]: live tokens, and the tail that the contract fills; rows of disabled groups must not
  gathered,  // a rank's rows of the chunk, request after request; those past its own length may be written
};

// How a reference from elsewhere tells what is admissible of an output or a field (see the op's `reference`).
enum class Told : std::uint8_t {
  value,  // "<name>.value" and "<name>.error", fp64: the last value before the narrowing lies in [value - error, value + error]
  range,  // "<name>.low" and "<name>.high": the least and the greatest right element
  exact,  // "<name>.exact": the only right element
};

// One field of a cache record.
struct Field {
  std::string name;
  DType dtype = DType::u8;
  Expression count;       // elements in a record
  std::string scaled_by;  // codes only: the field (of this record) or scalar input tensor that they are divided by …
  Expression tile;        // … and how many codes share one scale
  Told told = Told::value;
};

// How a cache stores a token's record, in the layout for which `when` holds.
struct Record {
  Expression when;
  bool planar = false;  // a block holds all records' first fields, then all their second fields, …
  std::vector<Field> fields;
};

struct TensorSpec {
  std::string name, doc;
  Role role = Role::in;
  Expression dtype;               // evaluates to a dtype's name
  std::vector<Expression> shape;  // elements; empty for caches
  Expression when;                // present where true; empty: always
  std::string values;             // in: the default recipe (harness/core/inputs.hpp)
  bool recipe_settable = false;   // in: a case may name another recipe in `values`
  bool strided = false;           // a case may give it a row stride and offset in `layout`
  bool per_rank = false;          // in: its values differ between ranks
  bool per_group = false;         // in: one tensor for each cache group, called "<name>.<group>"; `group.…` in its shape
  bool bounded = false;           // in: indexed by data, so it ends flush against an unmapped page
  Rows rows = Rows::all;          // out
  Expression unjudged;            // out: where true, any value in it, written or not, is accepted
  Told told = Told::value;        // out
  std::string in_place_of;        // out: the input whose memory it takes …
  Expression in_place_when;       // … where this is true
  // A cache, written (role cache), or only read (role in: it holds the records of the cached tokens).
  std::string cache, slot_mapping;  // the cache group, and the input that addresses what is written
  std::vector<Record> records;      // cache
};

struct Op {
  std::string name, doc;
  int version = 1;
  std::vector<std::string> geometry;  // the fields of Geometry that it uses: "batch", "padding", "dcp", …
  std::vector<std::string> caches;    // the cache groups it knows; {"*"}: any names
  bool rank_reference = false;        // the reference's answer depends on the rank
  std::vector<std::string> pipeline;  // the ops whose launches it is made of, in their order; empty: it is one launch
  std::string reference;              // of a user's op: the kernel that tells what is right, "lib:FILE" or "exec:COMMAND"
  std::vector<std::string> laws;      // that right kernels of it obey, by name (properties/laws)
  std::vector<Param> params;
  std::vector<Requirement> require;
  std::vector<Option> contract;
  std::vector<Preset> presets;  // of its contract
  std::vector<TensorSpec> tensors;
  json::Value source;  // the op.json it was read from

  const Param* param(std::string_view name) const;
  const Option* option(std::string_view name) const;
  const Preset* preset(std::string_view name) const;
  const TensorSpec* tensor(std::string_view name) const;
};

// The op in an op.json document. Throws InputError that names the JSON pointer, the value and the rule.
Op op_from_json(const json::Value& document, const std::string& source);

// Ops by name.
using Ops = std::map<std::string, Op, std::less<>>;

}  // namespace dcpcheck
