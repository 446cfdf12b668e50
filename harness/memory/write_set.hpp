// Which bytes of a buffer a launch must write, and which it may; all others it must not. Follows from the op alone.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "harness/core/inputs.hpp"
#include "harness/core/plan.hpp"

namespace dcpcheck {

enum class Duty : std::uint8_t { must, may };

// A run of elements of one row: of an output's row, or of one field of a token's cache record.
struct Span {
  std::int64_t begin = 0, end = 0;  // bytes from the buffer's start
  Duty duty = Duty::must;
  std::int64_t row = 0;     // of the Admissible: the token, or axis 0 of the output
  std::int64_t column = 0;  // of its first element
  std::int64_t slot = -1;   // caches
  int field = 0;            // caches: index into CachePlan::fields
};

// The spans of output or cache `tensor` on `rank`, sorted by begin and never overlapping.
std::vector<Span> write_set(const Plan& plan, const TensorPlan& tensor, const Inputs& inputs, std::int64_t rank);

}  // namespace dcpcheck
