// Where what a kernel leaves first parts from what a digest is known of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/exec/runner.hpp"

namespace dcpcheck {

struct Divergence {
  std::int64_t token = 0;           // the launch's row; the first that has one
  std::vector<std::int64_t> index;  // see Element
  std::string field;                // of a cache record, else empty
  std::string was, is;              // the two codes, as a person reads them
  std::int64_t count = 0;           // elements that differ
};

// Launches `now` on `rank`, and compares what it leaves in output or cache `buffer` with the elements that `digest`
// (CaseResult::outputs) was taken of. A digest has no elements: they are sought among the reference's canonical codes
// and what each of `others` leaves. Nothing where none of these has that digest, where a launch was refused, or where no
// element differs.
std::optional<Divergence> first_divergence(Prepared& prepared, std::int64_t rank, const std::string& buffer,
                                           const std::string& digest, const std::vector<const Kernel*>& others,
                                           const Kernel& now, Backend& backend, const RunOptions& options);

}  // namespace dcpcheck
