// Where a lane's cases come from: drawn by its op's generator, or one case over and over with seeds of its own. Drawn here
// rather than in workers, which begin anew whenever a kernel ends them: the array that covers all pairs of buckets takes a
// second to make.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "harness/campaign/intervals.hpp"
#include "harness/campaign/schedule.hpp"
#include "harness/core/case.hpp"
#include "harness/core/json.hpp"
#include "harness/exec/declaration.hpp"
#include "properties/generators.hpp"

namespace dcpcheck {

// A kernel's declaration as far as it says which cases it is for, and back. Throws InputError, its sentence beginning with
// `source`.
json::Value to_json(const Declaration& declaration);
Declaration declaration_from_json(const json::Value& value, const std::string& source);

class CaseSource {
 public:
  // `ops` must outlive it. `base`: the case that all are, but for their seeds.
  CaseSource(const Ops& ops, Lane lane, std::optional<Case> base, std::uint64_t seed);

  // The case of that index, the same in whatever order they are asked for; from any thread. Throws InputError where the lane's
  // kernel is for no case that is found.
  Case at(std::uint64_t index);

  // Which pairs of buckets the first cases of those indices meet, as Coverage::to_json has it; null where none are drawn.
  json::Value coverage(const Intervals& indices);
  // How many of the first cases it takes to meet all pairs; 0 where none are drawn.
  std::int64_t covering_cases();

 private:
  const Generator& generator();

  const Ops& ops_;
  Lane lane_;
  std::optional<Case> base_;
  std::uint64_t seed_;
  std::optional<Declaration> declared_;
  std::once_flag made_;
  std::unique_ptr<Generator> generator_;  // made when it is first needed
};

}  // namespace dcpcheck
