// Where a kernel may write in a sparse cache, by right or with a 32-bit address: the only bytes of it that are held.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/core/plan.hpp"

namespace dcpcheck {

// Bytes [begin, end) of a buffer, counted from its first, at `offset` of an image.
struct Window {
  std::int64_t begin = 0, end = 0;
  std::int64_t offset = 0;
};

// Windows begin and end on pages of this size, so that what is touched outside of them is seen by whole pages.
constexpr std::int64_t kWindowPage = 4096;

// The addresses that `address` may be taken for where it, or its count of elements of `size` bytes, is kept in 32 bits,
// signed or not; itself first.
std::vector<std::int64_t> images_of(std::int64_t address, std::int64_t size);

// How far below a sparse cache a signed 32-bit count of its fields' elements reaches.
std::int64_t reach_below(const CachePlan& cache);

// The windows of a sparse cache of the plan, sorted and apart: around the records of all ranks' tokens and of the cached
// prefix, around what their addresses and slots are in 32 bits, the first block and the last, and `guard` bytes (a multiple
// of kWindowPage) at both ends. Offsets are not filled in.
std::vector<Window> windows_of(const Plan& plan, const TensorPlan& tensor, std::int64_t guard);

}  // namespace dcpcheck
