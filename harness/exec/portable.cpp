#include "harness/exec/portable.hpp"

#include <algorithm>
#include <cstring>

#include "harness/core/error.hpp"
#include "harness/oracle/canonical.hpp"

namespace dcpcheck {
namespace {

// A span's field: of an output it is the whole row.
struct SpanRule {
  const Admissible* expected = nullptr;
  Comparison how;
  const FieldPlan* field = nullptr;   // of a cache
  const FieldPlan* scales = nullptr;  // of the same record
};

const Admissible& said_of(const Expected& expected, const std::string& name) {
  const auto found = expected.find(name);
  if (found == expected.end()) throw HarnessError("the reference says nothing of " + name);
  return found->second;
}

SpanRule told_of(const Plan& plan, const TensorPlan& tensor, const Span& span, const Expected& expected) {
  if (tensor.role != Role::cache)
    return {&said_of(expected, tensor.name), comparison_of(plan.value, tensor.dtype), nullptr, nullptr};
  const FieldPlan& field = tensor.cache.fields[static_cast<std::size_t>(span.field)];
  SpanRule told{&said_of(expected, tensor.name + "." + field.name), comparison_of(plan.value, field.dtype), &field, nullptr};
  for (const FieldPlan& other : tensor.cache.fields)
    if (!field.scaled_by.empty() && other.name == field.scaled_by) told.scales = &other;
  return told;
}

float fp32_at(const std::byte* at) {
  float number = 0;
  std::memcpy(&number, at, sizeof number);
  return number;
}

// The reference's scale of tile `tile` of a record. Not its canonical code, which may have fewer bits.
float own_scale(const Admissible& scales, std::int64_t row, std::int64_t tile) {
  const std::int64_t index = row * scales.columns + tile;
  if (scales.exact) return fp32_at(scales.codes.data() + index * 4);
  return narrow_fp32(scales.value[static_cast<std::size_t>(index)]);
}

// An input scalar that all of the field is scaled by, or 1.
float common_scale(const SpanRule& told, const Inputs& inputs, std::int64_t rank) {
  if (told.field == nullptr || told.field->scaled_by.empty() || told.scales != nullptr) return 1;
  return fp32_at(inputs.get(told.field->scaled_by, rank).data());
}

std::int64_t tile_of(const SpanRule& told, std::int64_t column) {
  return told.field == nullptr ? 0 : column / std::max<std::int64_t>(told.field->tile, 1);
}

}  // namespace

Bytes canonical_bytes(const Plan& plan, const TensorPlan& tensor, const Span& span, const Expected& expected,
                      const Inputs& inputs, std::int64_t rank) {
  const SpanRule told = told_of(plan, tensor, span, expected);
  if (!told.expected->knows(span.row)) return {};
  const Admissible* const scales = told.scales == nullptr ? nullptr : &said_of(expected, tensor.name + "." + told.scales->name);
  const float common = common_scale(told, inputs, rank);
  const std::int64_t size = size_of(told.how.dtype);
  Bytes bytes(static_cast<std::size_t>(span.end - span.begin));
  for (std::int64_t at = 0; at < std::ssize(bytes); at += size) {
    const std::int64_t column = span.column + at / size;
    const float scale = scales == nullptr ? common : own_scale(*scales, span.row, tile_of(told, column));
    const std::uint64_t code = canonical_code(*told.expected, span.row * told.expected->columns + column, told.how, scale);
    std::memcpy(bytes.data() + at, &code, static_cast<std::size_t>(size));
  }
  return bytes;
}

Restate restate_admissible(const Plan& plan, const TensorPlan& tensor, const ArenaBuffer& buffer, const Expected& expected,
                           const Inputs& inputs, std::int64_t rank, const std::byte* image) {
  return [&plan, &tensor, &buffer, &expected, &inputs, rank, image](const Span& span, Bytes& written) -> std::string {
    Bytes canonical = canonical_bytes(plan, tensor, span, expected, inputs, rank);
    if (canonical.empty() && !written.empty()) {
      written.clear();
      return "unknown";
    }
    const SpanRule told = told_of(plan, tensor, span, expected);
    std::vector<float> scales;  // that the kernel stored, or that it was given
    if (told.scales != nullptr) {
      scales.resize(static_cast<std::size_t>(told.scales->count));
      std::memcpy(scales.data(), image + buffer.place(tensor.cache.address(span.slot, *told.scales)),
                  scales.size() * sizeof(float));
    } else if (told.field != nullptr && !told.field->scaled_by.empty()) {
      scales.assign(static_cast<std::size_t>(tile_of(told, std::max<std::int64_t>(told.field->count, 1) - 1) + 1),
                    common_scale(told, inputs, rank));
    }
    const std::int64_t size = size_of(told.how.dtype), columns = std::ssize(written) / size;
    std::string wrong;
    const auto keep = [&](std::int64_t column) {
      wrong += (wrong.empty() ? "wrong at " : ",") + std::to_string(column);
      const std::int64_t at = (column - span.column) * size;
      std::memcpy(canonical.data() + at, written.data() + at, static_cast<std::size_t>(size));
    };
    const std::int64_t tile = told.field == nullptr ? 0 : told.field->tile;
    if (span.column == 0 && columns == told.expected->columns) {
      judge_row(*told.expected, span.row, written.data(), told.how, scales, tile,
                [&](std::int64_t column, double) { keep(column); });
    } else {
      for (std::int64_t column = span.column; column < span.column + columns; ++column) {
        const float scale = scales.empty() ? 1 : scales[static_cast<std::size_t>(tile_of(told, column))];
        if (!judge_element(*told.expected, span.row * told.expected->columns + column,
                           written.data() + (column - span.column) * size, told.how, scale)
                 .admitted)
          keep(column);
      }
    }
    written = std::move(canonical);
    return wrong.empty() ? "" : wrong + ".";
  };
}

}  // namespace dcpcheck
