#include "harness/memory/write_set.hpp"

#include <algorithm>
#include <cstring>

#include "harness/core/chunk.hpp"
#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

std::vector<Span> rows_of_output(const Plan& plan, const TensorPlan& tensor, std::int64_t rank) {
  std::vector<Span> spans;
  const std::int64_t size = size_of(tensor.dtype);
  const std::int64_t stride = tensor.shape.size() == 1 ? 1 : tensor.strides[0];
  const std::int64_t width = tensor.columns();
  const auto add = [&](std::int64_t row, std::int64_t from, std::int64_t to, Duty duty) {
    if (from >= to) return;
    const std::int64_t begin = tensor.offset + row * stride + from;
    spans.push_back({begin * size, (begin + to - from) * size, duty, row, from, -1, 0});
  };
  if (tensor.spec->rows == Rows::slots) {
    // [groups, capacity]: the live tokens, then a tail of fill; padding in between is may-write where the fill starts
    // at the padded count only.
    const auto tail = plan.value.contract.find("tail");
    const bool padded = tail != plan.value.contract.end() && tail->second == "padded";
    std::int64_t row = 0;
    for (const auto& [name, group] : plan.value.geometry.caches) {
      if (group.enabled) {
        add(row, 0, plan.live, Duty::must);
        add(row, plan.live, plan.tokens, padded ? Duty::may : Duty::must);
        add(row, plan.tokens, plan.capacity, Duty::must);
      }
      ++row;
    }
    return spans;
  }
  if (tensor.spec->rows == Rows::gathered) {
    const ChunkPlan chunk = plan_chunk(plan.value.geometry, plan.value.geometry.caches.begin()->second);
    std::int64_t first = 0;
    for (std::size_t request = 0; request < chunk.requests.size(); ++request) {
      const std::int64_t valid = chunk.valid_rows(request, rank);
      for (std::int64_t row = 0; row < chunk.requests[request].padded; ++row) {
        add(first + row, 0, width, row < valid ? Duty::must : Duty::may);
      }
      first += chunk.requests[request].padded;
    }
    return spans;
  }
  const bool live_only = tensor.spec->rows == Rows::live;
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    if (live_only && row >= plan.tokens) break;
    const bool must = !tensor.unjudged && (!live_only || row < plan.live);
    add(row, 0, width, must ? Duty::must : Duty::may);
  }
  return spans;
}

std::vector<Span> records_of_cache(const Plan& plan, const TensorPlan& tensor, const Inputs& inputs, std::int64_t rank) {
  std::vector<Span> spans;
  if (tensor.slot_mapping.empty()) return spans;
  const Bytes& slots = inputs.get(tensor.slot_mapping, rank);
  const CachePlan& cache = tensor.cache;
  for (std::int64_t token = 0; token < plan.live; ++token) {
    std::int64_t slot = 0;
    std::memcpy(&slot, slots.data() + token * 8, 8);
    if (slot < 0) continue;
    if (slot >= cache.slots())
      throw HarnessError("slot " + std::to_string(slot) + " of token " + std::to_string(token) + " lies outside " +
                         tensor.name);
    for (std::size_t field = 0; field < cache.fields.size(); ++field) {
      const FieldPlan& plan_field = cache.fields[field];
      if (plan_field.count == 0) continue;
      const std::int64_t begin = cache.address(slot, plan_field);
      spans.push_back({begin, begin + plan_field.bytes(), Duty::must, token, 0, slot, static_cast<int>(field)});
    }
  }
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  return spans;
}

}  // namespace

std::vector<Span> write_set(const Plan& plan, const TensorPlan& tensor, const Inputs& inputs, std::int64_t rank) {
  return tensor.role == Role::cache ? records_of_cache(plan, tensor, inputs, rank) : rows_of_output(plan, tensor, rank);
}

}  // namespace dcpcheck
