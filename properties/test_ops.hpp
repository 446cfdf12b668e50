// For tests: the ops that come with dcpcheck, and small ones made up here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/core/json.hpp"
#include "properties/generators.hpp"
#include "reference/builtin_ops.hpp"

namespace dcpcheck {

inline constexpr std::int64_t kTestMemory = std::int64_t{1} << 30;  // bytes that a case may take

inline Ops builtin_ops_alone() {
  Ops out;
  for (auto& [name, builtin] : builtin_ops()) out.emplace(name, builtin.op);
  return out;
}

inline std::vector<std::string> builtin_op_names() {
  std::vector<std::string> names;
  for (const auto& [name, builtin] : builtin_ops()) names.push_back(name);
  return names;
}

// Sanitizers make a case several times as long: they are for wrong memory, which a few cases of each kind show.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// The ops whose generators are tested: under sanitizers those that have all kinds of steps between them.
inline std::vector<std::string> generated_op_names() {
  if (kSanitized) return {"compute_slot_mapping", "dense_prefill", "merge_ranks"};
  return builtin_op_names();
}

// For tests of what cases are like, whichever pairs the first of them meet: most of the time that a generator takes to make
// goes into pairs that cannot be met.
inline GenerateOptions in_a_hurry() {
  GenerateOptions options;
  options.trials = 1;
  return options;
}

// For tests of cases that are free.
inline GenerateOptions without_rows() {
  GenerateOptions options;
  options.trials = 0;
  return options;
}

// A user's own op, none of whose names is one of ours. `require`: its rules.
inline Op made_up_op(const std::string& require = R"json([
    {"that": "width % 3 == 0", "say": "width must be a multiple of 3"},
    {"that": "mode != 'wide' || (width == 48 && option.rounding == 'up')", "say": "wide is for width 48, rounded up"
},
    {"that": "!store.present || (deep && store.kernel_block_size * width % 8 == 0)", "say": "store needs depth"}])json") {
  const std::string text = R"json({"schema": "dcpcheck.op/1", "name": "scramble", "version": 1,
    "geometry": ["batch", "padding", "tp", "dcp", "caches"], "caches": ["store"], "rank_reference": true,
    "params": {"width": {"type": "integer", "min": 1, "max": 300, "default": 3, "plainest": 3, "prefer": [3, 48]},
               "mode": {"type": "choice", "values": ["plain", "wide"], "default": "plain"},
               "deep": {"type": "flag", "default": false}},
    "require": )json" + require +
                           R"json(,
    "contract": {"rounding": {"values": ["down", "up"]}},
    "tensors": [
      {"name": "x", "role": "in", "dtype": "'bf16'", "shape": ["T", "width"], "values": "normal:1", "recipe_settable": true, "strided": true},
      {"name": "where", "role": "in", "dtype": "'i64'", "shape": ["T"], "when": "store.present && store.mapped", "values": "slots:store", "per_rank": true},
      {"name": "y", "role": "out", "dtype": "'fp32'", "shape": ["T", "width"], "when": "deep", "rows": "live", "strided": true},
      {"name": "store_cache", "role": "cache", "cache": "store", "when": "store.present", "slot_mapping": "where",
       "records": [{"fields": [{"name": "x", "dtype": "bf16", "count": "width"}]}]}]})json";
  return op_from_json(json::parse(text, "scramble.op.json"), "scramble.op.json");
}

}  // namespace dcpcheck
