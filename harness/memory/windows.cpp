#include "harness/memory/windows.hpp"

#include <algorithm>
#include <set>

#include "harness/core/geometry_inputs.hpp"

namespace dcpcheck {
namespace {

std::int64_t page_below(std::int64_t byte) { return byte - (byte % kWindowPage + kWindowPage) % kWindowPage; }
std::int64_t page_above(std::int64_t byte) { return page_below(byte + kWindowPage - 1); }

std::int64_t as_signed(std::int64_t value) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(value)); }
std::int64_t as_unsigned(std::int64_t value) { return static_cast<std::uint32_t>(value); }

// Every slot that holds a record on some rank: of the cached prefix, and of the launch's tokens.
std::set<std::int64_t> slots_held(const Plan& plan, const TensorPlan& tensor) {
  std::set<std::int64_t> held;
  const Geometry& geometry = plan.value.geometry;
  const GroupMap map(plan, tensor.cache.group);
  for (std::int64_t rank = 0; rank < geometry.tp; ++rank) {
    if (!tensor.slot_mapping.empty()) {
      for (const std::int64_t slot : map.slots(rank)) {
        if (slot >= 0) held.insert(slot);
      }
    }
    for (std::size_t request = 0; map.by_position() && request < geometry.batch.size(); ++request) {
      for (std::int64_t position = 0; position < geometry.batch[request].cached; ++position) {
        const std::int64_t slot = map.slot(static_cast<std::int64_t>(request), position, rank);
        if (slot >= 0) held.insert(slot);
      }
    }
  }
  return held;
}

}  // namespace

std::vector<std::int64_t> images_of(std::int64_t address, std::int64_t size) {
  std::vector<std::int64_t> images = {address};
  for (const std::int64_t unit : {std::int64_t{1}, size}) {
    for (const std::int64_t wrapped : {as_signed(address / unit), as_unsigned(address / unit)}) {
      const std::int64_t image = wrapped * unit + address % unit;
      if (std::find(images.begin(), images.end(), image) == images.end()) images.push_back(image);
    }
  }
  return images;
}

std::int64_t reach_below(const CachePlan& cache) {
  std::int64_t widest = 1;
  for (const FieldPlan& field : cache.fields) widest = std::max(widest, size_of(field.dtype));
  return widest << 31;
}

std::vector<Window> windows_of(const Plan& plan, const TensorPlan& tensor, std::int64_t guard) {
  const CachePlan& cache = tensor.cache;
  std::vector<Window> found;
  const auto add = [&](std::int64_t begin, std::int64_t end) { found.push_back({page_below(begin), page_above(end), 0}); };
  for (const std::int64_t slot : slots_held(plan, tensor)) {
    for (const FieldPlan& field : cache.fields) {
      if (field.count == 0) continue;
      std::set<std::int64_t> places;
      for (const std::int64_t image : images_of(cache.address(slot, field), size_of(field.dtype))) places.insert(image);
      // A slot that is negative in 32 bits is no one's.
      for (const std::int64_t wrapped : {as_signed(slot), as_unsigned(slot)}) {
        if (wrapped >= 0) places.insert(cache.address(wrapped, field));
      }
      for (const std::int64_t place : places) add(place, place + field.bytes());
    }
  }
  const std::int64_t bytes = tensor.bytes();
  add(-guard, std::min(cache.block_stride, bytes));
  add(bytes - cache.block_stride, page_above(bytes) + guard);
  std::sort(found.begin(), found.end(), [](const Window& a, const Window& b) { return a.begin < b.begin; });
  std::vector<Window> windows;
  for (const Window& window : found) {
    if (!windows.empty() && window.begin <= windows.back().end) {
      windows.back().end = std::max(windows.back().end, window.end);
    } else {
      windows.push_back(window);
    }
  }
  return windows;
}

}  // namespace dcpcheck
