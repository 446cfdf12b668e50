// A case worked out: which tensors there are, their shapes, strides and bytes, and where a cache keeps each record.
// Everything that runs, judges or reports a case reads it from here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/core/case.hpp"

namespace dcpcheck {

struct FieldPlan {
  std::string name;
  DType dtype = DType::u8;
  std::int64_t count = 0;   // elements in a record
  std::int64_t offset = 0;  // bytes: from the record's start; planar: from the kernel block's start to the field's plane
  std::string scaled_by;    // see Field
  std::int64_t tile = 0;
  Told told = Told::value;

  std::int64_t bytes() const { return count * size_of(dtype); }
};

struct CachePlan {
  std::string group;                   // "mla", "indexer"
  std::int64_t kernel_block_size = 0;  // Bk, rows in a kernel block
  std::int64_t blocks = 0;             // kernel blocks, block 0 and the spare ones counted in
  std::int64_t record_bytes = 0;       // of one token
  std::int64_t block_stride = 0;       // bytes from one kernel block to the next, padding counted in
  bool planar = false;
  bool sparse = false;        // of its bytes only those in windows (harness/memory/windows.hpp) take memory …
  std::int64_t resident = 0;  // … so many at the most; 0 where it is not sparse
  std::vector<FieldPlan> fields;

  std::int64_t slots() const { return blocks * kernel_block_size; }
  // Byte of the cache at which `field` of the record in `slot` (0 <= slot < slots()) starts.
  std::int64_t address(std::int64_t slot, const FieldPlan& field) const;
};

struct TensorPlan {
  const TensorSpec* spec = nullptr;
  std::string name;  // spec->name, or "<name>.<group>" for a tensor per cache group
  Role role = Role::in;
  DType dtype = DType::u8;
  std::vector<std::int64_t> shape;    // caches: {blocks, Bk, record_bytes}, in bytes
  std::vector<std::int64_t> strides;  // elements
  std::int64_t offset = 0;            // elements from the start of the storage
  std::int64_t storage_elements = 0;
  std::string recipe;        // in
  std::string in_place_of;   // out: the input it lies on; empty: memory of its own
  std::string slot_mapping;  // cache: the input that addresses it; empty: nothing may be written
  bool unjudged = false;     // out
  CachePlan cache;           // role cache

  std::int64_t bytes() const { return storage_elements * size_of(dtype); }
  std::int64_t rows() const { return shape.empty() ? 1 : shape.front(); }
  std::int64_t columns() const;  // elements of one row (product of the other axes)
};

struct Plan {
  const Op* op = nullptr;
  Case value;
  Environment environment;          // what the op's expressions see
  std::vector<TensorPlan> tensors;  // those that are present, in the op's order
  std::int64_t live = 0, tokens = 0, capacity = 0;
  std::int64_t memory = 0;  // bytes that a run of it takes at the most, on the host

  const TensorPlan* find(std::string_view name) const;    // nullptr where it is not present
  const TensorPlan& tensor(std::string_view name) const;  // throws HarnessError where it is not present
};

// Works out `value`; `op` must outlive the plan. Throws InputError where the case breaks a rule, or needs more than
// `budget` bytes (nothing of that size is allocated before the check).
//
// The environment: every param by its name; T, live, cached (tokens of all requests), capacity, R (requests), idle (those
// without uncached tokens), G (cache groups), tp, W, I; `option.<name>`; `<group>.present`, `<group>.mapped` (1 where it has a
// slot mapping), `<group>.own_map` (1 where that is not "same"), `<group>.sharded` (1 where its rows are split over the DCP
// ranks), `<group>.block_size`,
// `<group>.kernel_block_size`, `<group>.table_columns`, `<group>.blocks`, `<group>.chunk_rows` and `<group>.context_rows`
// (chunk.hpp);
// in a tensor per cache group also `group.<…>`.
Plan make_plan(const Op& op, const Case& value, std::int64_t budget, const std::string& source = "case");

}  // namespace dcpcheck
