// A case: one test of an op, as a plain value. Its id names it in reports, in the corpus and in replay lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/core/json.hpp"
#include "harness/core/op.hpp"

namespace dcpcheck {

struct Request {
  std::int64_t cached = 0;    // tokens whose cache rows exist before the launch
  std::int64_t uncached = 0;  // tokens of the launch
  friend bool operator==(const Request&, const Request&) = default;
};

// Rows after the live tokens, as a CUDA graph of a fixed size has them.
struct Padding {
  std::int64_t tokens = 0;
  std::string slots = "-1";            // "-1", "-block", "int32_min", "int64_min"
  std::string positions = "in_range";  // "in_range", "zero", "stale" (past the rope table: contract padding_positions any)
  std::string values = "nan";          // a recipe
  friend bool operator==(const Padding&, const Padding&) = default;
};

// A KV cache group that is present: its own block size, block table and slot mapping.
struct CacheGroup {
  bool enabled = true;                           // compute_slot_mapping: false leaves the group's row to another kernel
  std::int64_t block_size = 64;                  // logical tokens a block, per rank
  std::int64_t kernel_block_size = 64;           // divides block_size; where a case file does not say, the same
  std::int64_t spare_blocks = 2;                 // kernel blocks that no request owns, besides block 0
  std::int64_t block_stride_padding = 0;         // bytes between kernel blocks that belong to none
  bool sparse = false;                           // its address range is reserved, and memory only where a kernel may write
  std::string slot_mapping = "dcp";              // "dcp", "replicated", "random", "explicit", "none", "same"
  std::int64_t table_columns = 0;                // columns of the block table; 0: as many as the longest request needs
  std::vector<std::vector<std::int64_t>> slots;  // explicit: [tp][T]
  friend bool operator==(const CacheGroup&, const CacheGroup&) = default;
};

// Which tokens of each request's context a launch gathers: [start, start + tokens), tokens 0 meaning all that follow.
// Both are multiples of W * I.
struct ChunkRange {
  std::int64_t start = 0, tokens = 0;
  friend bool operator==(const ChunkRange&, const ChunkRange&) = default;
};

struct Geometry {
  std::vector<Request> batch;
  Padding padding;
  std::int64_t max_batched_tokens = 0;  // capacity of slot maps and top-k; 0: as many as the launch has
  std::int64_t tp = 1;                  // ranks
  std::int64_t world_size = 1;          // DCP world size W; divides tp
  std::int64_t interleave = 1;          // I
  std::map<std::string, CacheGroup> caches;
  ChunkRange chunk;
  friend bool operator==(const Geometry&, const Geometry&) = default;

  std::int64_t live_tokens() const;
  std::int64_t tokens() const { return live_tokens() + padding.tokens; }  // T, the rows of the launch
};

// A row-strided view of a tensor: row r starts at element offset + r * stride of its storage. stride 0: dense.
struct RowLayout {
  std::int64_t stride = 0, offset = 0;
  friend bool operator==(const RowLayout&, const RowLayout&) = default;
};

// Elements that a file beside the case's own holds. They are known by their digest, which is in `values`: two cases are the
// same where that is.
struct Stored {
  std::shared_ptr<const std::vector<std::byte>> bytes;
  friend bool operator==(const Stored&, const Stored&) { return true; }
};

struct Case {
  std::string op;
  std::uint64_t seed = 0;
  Geometry geometry;
  std::map<std::string, ParamValue> params;     // all of the op's, defaults filled in
  std::map<std::string, std::string> contract;  // all of the op's, defaults filled in
  std::map<std::string, RowLayout> layout;      // tensors that are not dense
  std::map<std::string, std::string> values;    // inputs whose recipe is not the op's default
  std::map<std::string, Stored> stored;         // by SHA-256: what recipes stored:… of `values` name
  bool graph = false;                           // launch through a captured CUDA graph
  friend bool operator==(const Case&, const Case&) = default;

  bool flag(std::string_view param) const;
  std::int64_t integer(std::string_view param) const;
  float number(std::string_view param) const;
  const std::string& choice(std::string_view param) const;
  const std::string& option(std::string_view name) const;
};

// A case file: the case, and what a person wrote beside it.
struct CaseFile {
  std::string path;          // where it was read from; empty for a generated case
  std::string name, source;  // source: the report it stands for
  json::Value expect;        // {"<fault>": {"status", "reasons", "buffers"}}; absent: every kernel passes
  Case value;
};

// The typed, canonical form: keys sorted, defaults left out. Its text is what the id is taken of.
json::Value case_to_json(const Op& op, const Case& value);

// First 16 hex digits of the SHA-256 of canonical(case_to_json(…)).
std::string case_id(const Op& op, const Case& value);

// The case in `document` (the value of "case" in a case file). Throws InputError that names the JSON pointer
// (under `pointer`), the value and the rule.
Case case_from_json(const Ops& ops, const json::Value& document, const std::string& source, const std::string& pointer = "");

// Reads what the case's recipes stored:… name from `folder` into it. Throws InputError where a file cannot be read, or does not
// hold what its name says.
void read_stored(Case& value, const std::string& folder, const std::string& source);

// A whole case file's text, strictly validated; what is stored beside it is not read.
CaseFile parse_case_file(const Ops& ops, std::string_view text, const std::string& path);
CaseFile load_case_file(const Ops& ops, const std::string& path);

// What the op's expressions see of a case: see make_plan. Sizes that depend on memory layout are not in it yet.
Environment environment_of(const Op& op, const Case& value);

// Checks the rules that join several fields (W divides tp, I divides B, op.require, …); from case_from_json, and for
// cases that were made rather than read. Throws InputError.
void validate(const Op& op, const Case& value, const std::string& source);

}  // namespace dcpcheck
