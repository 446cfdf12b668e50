// Cases of an op, drawn: a generator for each thing in which cases can differ, put together from the Op value
// alone, so that a user's own op has them, too. They draw small integers; tensors come from the case's seed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/core/case.hpp"
#include "properties/buckets.hpp"

namespace dcpcheck {

struct GenerateOptions {
  // A case's cost at the most: elements of all tensors times ranks, and where queries meet keys the products of them. A
  // case of this cost runs in a few milliseconds.
  std::int64_t cost = 2'000'000;
  std::int64_t memory = std::int64_t{1} << 30;  // bytes that a case may take (Plan::memory)
  // Each so manieth case launches 65,535, 65,536 or 65,537 rows of the least width; 0: none. The case before
  // it has a sparse cache, where the op writes any. Both may cost more.
  std::int64_t large_every = 64;
  std::int64_t large_cost = 8'000'000;
  int trials = 24;  // attempts at a pair of buckets before it counts as infeasible; 0: no covering array, all cases are free
  // By dimension (dimensions_of) the buckets that cases may be in: what a kernel provides. Dimensions left out: all.
  std::map<std::string, std::vector<std::string>> only;
  // Throws InputError where a case that its op's own rules admit is none: what a pipeline's parts make of it.
  std::function<void(const Case&)> check;
};

class Generator {
 public:
  // `op` must outlive it. Works out the covering array, in a second or less. Throws InputError where options name a
  // dimension or a bucket that there is not, or where no valid case was found.
  explicit Generator(const Op& op, GenerateOptions options = {});
  ~Generator();
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;

  // Case `index` of `seed`: valid, and a function of these two, the op and the options alone. The first indices take
  // their buckets from the covering array, a row each.
  Case operator()(std::uint64_t seed, std::uint64_t index) const;

  const Op& op() const;
  const GenerateOptions& options() const;
  const std::vector<Dimension>& dimensions() const;
  const CoveringArray& covering() const;
  // How many of the first indices it takes to go through the covering array.
  std::uint64_t covering_cases() const;

 private:
  class Implementation;
  std::unique_ptr<const Implementation> implementation_;
};

// The plainest valid case of `op` that was found: its defaults, one request of one token, as few cache groups as it takes.
// Throws InputError where none was.
Case plain_case(const Op& op);

// What a case costs to run (see GenerateOptions::cost).
std::int64_t cost_of(const Plan& plan);

}  // namespace dcpcheck
