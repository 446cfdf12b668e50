// A manifest: what a cubin or PTX file does not say of itself. Which op's kernels it has, which case each variant is for, how
// a launch is made, and what each parameter is. Format: reports/schema/manifest.schema.json, told in manifest.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/op.hpp"
#include "harness/exec/declaration.hpp"

namespace dcpcheck {

// The C type that a number is passed as.
enum class ScalarType : std::uint8_t { i8, i16, i32, i64, f32, f64 };

// Bytes of `type`: its alignment, too.
std::int64_t size_of(ScalarType type);

// What a parameter is given. Which members count follows from the kind.
struct Binding {
  enum class Kind : std::uint8_t {
    address,    // of `tensor`, `offset` bytes in
    stride,     // of `tensor` along `axis`, in its elements (a cache's: bytes)
    shape,      // the same for how many there are
    value,      // `value`, an expression of whole numbers
    number,     // the case's fp32 param `param`
    constant,   // `integer`, or `real` where the type is f32 or f64
    null,       // a null pointer
    scratch,    // `value` bytes of device memory of this launch's own, 256-byte aligned
    array,      // the address of device memory that holds parts[0] once for each cache group, in the order of their names
    structure,  // `parts`, each aligned to its size, as C lays a struct out
  };
  Kind kind = Kind::null;
  std::string place;  // "/variants/0/parameters/3 (x_stride)": in errors
  std::string tensor, param;
  bool optional = false;  // a tensor that is not there: null, 0; else the variant is not for the case
  Expression offset, value;
  std::int64_t axis = 0;
  ScalarType type = ScalarType::i64;
  std::int64_t integer = 0;
  double real = 0;
  std::int64_t alignment = 1;  // address: of what is viewed there, in bytes
  bool zeroed = false;         // scratch; else it holds a pattern, so that what relies on zeros shows
  std::vector<Binding> parts;

  std::int64_t bytes() const;    // that the parameter takes
  std::int64_t aligned() const;  // to so many
};

// What the compiler took for granted: a launch that breaks it reads wrong memory, so none is made.
struct Assumption {
  std::string tensor;  // its address, `offset` bytes in; empty: `value`
  Expression offset, value;
  std::int64_t divisible_by = 0;  // 0: it must equal `equal_to`
  std::int64_t equal_to = 0;
};

struct Variant {
  std::string name, place;
  std::string module;  // a key of Manifest::modules
  std::string entry;
  Expression when;  // of the case; empty: every one
  std::vector<Assumption> assumptions;
  std::array<Expression, 3> grid, block;  // x, y, z; empty: 1
  std::array<Expression, 3> cluster;      // blocks of a cluster; all empty: none
  Expression shared_bytes;                // dynamic; empty: 0
  bool cooperative = false;
  bool programmatic_stream_serialization = false;
  std::vector<Binding> parameters;
};

struct Manifest {
  const Op* op = nullptr;
  Declaration declared;
  std::vector<std::pair<std::string, Expression>> values;  // names for what expressions share; each may use those before it
  std::vector<Variant> variants;                           // the first that fits is launched
  std::map<std::string, std::shared_ptr<const std::string>> modules;  // path as written -> bytes
};

// Reads the manifest at `path`, and the modules that it names, which lie in its folder. Everything that can be known without
// a case is checked: names against the op, parameters against what the module says that its entry takes. `source` is what
// errors begin with; `ops` must outlive what is returned. Throws InputError.
Manifest read_manifest(const std::string& path, const Ops& ops, const std::string& source);

}  // namespace dcpcheck
