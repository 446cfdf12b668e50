// The inputs of a case: a pure function of the case alone. Every element comes from Philox, keyed by the case's seed
// and the tensor's name and counted by the element, through integer and IEEE arithmetic only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/core/plan.hpp"

namespace dcpcheck {

using Bytes = std::vector<std::byte>;

struct Inputs {
  std::map<std::string, Bytes, std::less<>> shared;              // storage (TensorPlan::bytes()) of what all ranks have
  std::vector<std::map<std::string, Bytes, std::less<>>> ranks;  // … and of what each rank has for itself
  // Records of the cached prefix: cache tensor -> rank -> slot -> record bytes, fields in order (never planar).
  std::map<std::string, std::vector<std::map<std::int64_t, Bytes>>, std::less<>> prefix;

  // The storage of input `name` on `rank`; throws HarnessError where there is none.
  const Bytes& get(std::string_view name, std::int64_t rank) const;
};

// Throws InputError where the input's recipe cannot fill it: integers by one of floats, an odd width by unit_circle, more or
// fewer elements than are stored.
void check_recipe_fits(const Case& value, const TensorPlan& input);

// Puts a record (fields in order, as in Inputs::prefix) into `slot` of the cache whose first byte is at `base`.
void place_record(const CachePlan& cache, std::int64_t slot, const Bytes& record, std::byte* base);

// All inputs of the plan's case. `threads` changes the time only.
Inputs make_inputs(const Plan& plan, int threads = 1);

// The storage of one of them, no cache, on `rank`.
Bytes make_input(const Plan& plan, const TensorPlan& tensor, std::int64_t rank, int threads = 1);

// Throws InputError where `recipe` is none. Recipes of activations and weights (rows are axis 0):
//   normal:S      N(0, S)                        ladder       row t at the t-th of sigma 1, 0.1, 0.03, 0.01, 1e-3
//   large_mean    N(0, 1) + 100                  signs        ±1, as many of each as can be (mean 0, rms 1)
//   zero          +0                             constant:X   X
//   critical      ±1, every 8th at 1.75 or one   saturating   N(0, 1) scaled to 1e4
//                 ulp to either side             tiny         N(0, 1) scaled to 1e-30
//   mixed         each row by another of normal:1, ladder, signs, zero, tiny, saturating
//   special       normal:1 with NaN, +inf or -inf in one element of every 4th row
//   nan           NaN everywhere                 weights      1 + N(0, 0.2), never constant along a row
//   sparse:K      N(0, 1) in K places of a row,  below:N      integers of [0, N)
//                 +0 in the others
//   around:X      X * (1 + N(0, 0.1)), positive  unit_circle  rows of cos | sin of points on the unit circle
//   lse           5 N(0, 1), some of them 1e4 below it or 300 above it, some all the same, some of them empty
//   stored:SHA256 the elements, dense, in a file beside the case's own, called <SHA256>.bin
//   empty         what stands for the LSE of no keys: -inf, +inf or NaN
// and, filled from the geometry: positions, query_start_loc, idx_mapping, block_table, slots:<cache>, group:<field>, and
// of the chunk (chunk.hpp) chunk:local_starts [R], chunk:local_offsets [R + 1], chunk:context_offsets [R + 1].
// partials:X: parts of attention outputs whose LSEs are the input X: N(0, 1); those of an empty LSE hold anything, mostly NaN.
// gathered: W pieces [W, chunk_rows, …] as ranks gather them, N(0, 1) in the rows that a rank owns, NaN in the others.
void check_recipe(std::string_view recipe);

// The slot of each token of the launch (padding last) on `rank`, as the case's geometry has it: what an engine's
// slot-mapping kernel would have given. `group` must be present and mapped.
std::vector<std::int64_t> slots_of(const Plan& plan, const std::string& group, std::int64_t rank);

// The block table of `group`: [R][columns] kernel-block ids, rows by request.
std::vector<std::vector<std::int32_t>> block_table(const Plan& plan, const std::string& group);

}  // namespace dcpcheck
