#include "properties/observe.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "harness/core/digest.hpp"
#include "harness/core/dtype.hpp"
#include "harness/core/error.hpp"
#include "harness/core/recipe.hpp"
#include "harness/memory/arena.hpp"
#include "harness/memory/write_set.hpp"
#include "harness/oracle/judge.hpp"

namespace dcpcheck {
namespace {

constexpr std::size_t kShown = 5;

const ArenaBuffer& buffer_of(const ArenaLayout& arena, const TensorPlan& tensor) {
  return arena.buffer(tensor.in_place_of.empty() ? tensor.name : tensor.in_place_of);
}

std::map<std::string, RowsLeft, std::less<>> rows_left(const Setting& setting, const ArenaLayout& arena, std::int64_t rank,
                                                       const std::byte* image) {
  std::map<std::string, RowsLeft, std::less<>> left;
  for (const TensorPlan& tensor : setting.plan.tensors) {
    if (tensor.role == Role::in) continue;
    const ArenaBuffer& buffer = buffer_of(arena, tensor);
    RowsLeft& rows = left[tensor.name];
    rows.resize(static_cast<std::size_t>(tensor.role == Role::cache ? setting.plan.live : tensor.rows()));
    // Sorted by address: of one record, fields come in their order, planar or not.
    for (const Span& span : write_set(setting.plan, tensor, setting.inputs, rank)) {
      if (span.duty != Duty::must) continue;
      const std::byte* const from = image + buffer.place(span.begin);
      Bytes bytes(from, from + (span.end - span.begin));
      canonicalise_nans(
          bytes, tensor.role == Role::cache ? tensor.cache.fields[static_cast<std::size_t>(span.field)].dtype : tensor.dtype);
      Bytes& row = rows[static_cast<std::size_t>(span.row)];
      row.insert(row.end(), bytes.begin(), bytes.end());
    }
  }
  return left;
}

// The axis of `tensor` that has an index for each row of the launch; -1: none has.
int token_axis(const TensorPlan& tensor) {
  for (std::size_t axis = 0; axis < tensor.spec->shape.size(); ++axis) {
    if (tensor.spec->shape[axis].text() == "T") return static_cast<int>(axis);
  }
  return -1;
}

bool follows_from_geometry(const TensorPlan& tensor) {
  return !is_float(tensor.dtype) && parse_recipe(tensor.recipe).of_geometry();
}

// Copies index `source` of `axis` of `from` to index `target` of that of `to`, whatever lies on the other axes.
void copy_index(const TensorPlan& from, const Bytes& source_storage, std::int64_t source, const TensorPlan& to,
                Bytes& target_storage, std::int64_t target, std::size_t axis) {
  const auto size = static_cast<std::size_t>(size_of(to.dtype));
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= to.shape[i];
  for (std::size_t i = axis + 1; i < to.shape.size(); ++i) inner *= to.shape[i];
  const auto at = [&](const TensorPlan& tensor, std::int64_t index, std::int64_t before) {
    std::int64_t element = tensor.offset + index * tensor.strides[axis];
    for (std::size_t i = axis; i-- > 0;) {
      element += before % tensor.shape[i] * tensor.strides[i];
      before /= tensor.shape[i];
    }
    return static_cast<std::size_t>(element) * size;
  };
  if (inner == 0) return;
  for (std::int64_t before = 0; before < outer; ++before) {
    std::memcpy(target_storage.data() + at(to, target, before), source_storage.data() + at(from, source, before),
                static_cast<std::size_t>(inner) * size);
  }
}

Bytes& storage_of(Inputs& inputs, const TensorPlan& tensor, std::int64_t rank) {
  return tensor.spec->per_rank ? inputs.ranks[static_cast<std::size_t>(rank)].at(tensor.name) : inputs.shared.at(tensor.name);
}

// Calls f(tensor, rank) for each storage of an input that is no cache.
template <class F>
void each_input(const Plan& plan, F f) {
  for (const TensorPlan& tensor : plan.tensors) {
    if (tensor.role != Role::in || !tensor.spec->cache.empty()) continue;
    const std::int64_t ranks = tensor.spec->per_rank ? plan.value.geometry.tp : 1;
    for (std::int64_t rank = 0; rank < ranks; ++rank) f(tensor, rank);
  }
}

}  // namespace

std::vector<Observation> observe_again(const Setting& setting, const Kernel& kernel, Backend& backend, int threads, int times) {
  const ArenaLayout arena = arena_layout(setting.plan);
  HostMemory before(arena.bytes);
  const std::shared_ptr<std::byte> after = backend.image_memory(arena.bytes);
  std::vector<Observation> seen(static_cast<std::size_t>(times));
  if (const LaunchError declined = decline(kernel, setting.plan); !declined.empty()) {
    for (Observation& one : seen) {
      one.refused = declined.why;
      one.declined = true;
    }
    return seen;
  }
  for (std::int64_t rank = 0; rank < setting.plan.value.geometry.tp; ++rank) {
    fill_arena(before.span(), arena, setting.plan, setting.inputs, rank, Poison::A);
    const std::unique_ptr<Placement> placement = backend.place(setting.plan, setting.inputs, rank, arena, rank);
    for (Observation& one : seen) {
      if (!one.refused.empty()) continue;
      std::memcpy(after.get(), before.data(), static_cast<std::size_t>(arena.bytes));
      const LaunchError error = placement->run(kernel, {after.get(), static_cast<std::size_t>(arena.bytes)}, threads);
      one.refused = error.why;
      one.declined = error.kind == LaunchError::Kind::skipped && !error.empty();
      if (one.refused.empty()) one.ranks.push_back(rows_left(setting, arena, rank, after.get()));
    }
  }
  return seen;
}

Observation observe(const Setting& setting, const Kernel& kernel, Backend& backend, int threads) {
  return std::move(observe_again(setting, kernel, backend, threads, 1).front());
}

Setting derive(const Setting& from, const Case& value, const std::vector<std::int64_t>& rows, std::int64_t memory) {
  Setting to;
  to.plan = make_plan(*from.plan.op, value, memory);
  if (static_cast<std::int64_t>(rows.size()) != to.plan.live) {
    throw HarnessError("a law named " + std::to_string(rows.size()) + " rows for a launch of " + std::to_string(to.plan.live));
  }
  to.inputs = make_inputs(to.plan);
  each_input(to.plan, [&](const TensorPlan& tensor, std::int64_t rank) {
    const TensorPlan* const source = from.plan.find(tensor.name);
    if (source == nullptr || follows_from_geometry(tensor)) return;
    const Bytes& given = from.inputs.get(tensor.name, rank);
    Bytes& storage = storage_of(to.inputs, tensor, rank);
    const int axis = token_axis(tensor);
    if (axis >= 0) {
      for (std::size_t row = 0; row < rows.size(); ++row) {
        copy_index(*source, given, rows[row], tensor, storage, static_cast<std::int64_t>(row), static_cast<std::size_t>(axis));
      }
    } else if (source->shape == tensor.shape && !tensor.shape.empty()) {
      for (std::int64_t i = 0; i < tensor.shape[0]; ++i) copy_index(*source, given, i, tensor, storage, i, 0);
    }
  });
  return to;
}

Setting permute(const Setting& from, const std::vector<std::int64_t>& rows) {
  Setting to = from;
  each_input(to.plan, [&](const TensorPlan& tensor, std::int64_t rank) {
    const int axis = token_axis(tensor);
    if (axis < 0) return;
    const Bytes& given = from.inputs.get(tensor.name, rank);
    Bytes& storage = storage_of(to.inputs, tensor, rank);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      copy_index(tensor, given, rows[row], tensor, storage, static_cast<std::int64_t>(row), static_cast<std::size_t>(axis));
    }
  });
  return to;
}

Case with_batch(const Case& value, std::vector<Request> batch, const std::vector<std::int64_t>& rows) {
  Case out = value;
  out.geometry.batch = std::move(batch);
  const auto live = static_cast<std::size_t>(value.geometry.live_tokens());
  for (auto& [name, group] : out.geometry.caches) {
    for (std::vector<std::int64_t>& slots : group.slots) {
      std::vector<std::int64_t> kept;
      kept.reserve(slots.size());
      for (const std::int64_t row : rows) kept.push_back(slots[static_cast<std::size_t>(row)]);
      for (std::size_t row = live; row < slots.size(); ++row) kept.push_back(slots[row]);
      slots = std::move(kept);
    }
  }
  return out;
}

Element Differences::element_at(const TensorPlan& tensor, std::int64_t row, std::int64_t byte, const Bytes& got,
                                const Bytes& other, const std::string& elsewhere, std::int64_t& width) const {
  Element element;
  DType dtype = tensor.dtype;
  std::int64_t first = 0;  // byte of the row at which the element's field starts
  if (tensor.role == Role::cache) {
    for (const FieldPlan& field : tensor.cache.fields) {
      if (field.count == 0) continue;
      if (byte < first + field.bytes()) {
        dtype = field.dtype;
        element.field = field.name;
        break;
      }
      first += field.bytes();
    }
  }
  width = size_of(dtype);
  std::int64_t column = (byte - first) / width;
  if (tensor.role == Role::cache) {
    element.index = {row, column};
  } else {
    element.index.assign(tensor.shape.size(), 0);
    element.index[0] = row;
    for (std::size_t axis = tensor.shape.size(); axis-- > 1;) {
      element.index[axis] = column % tensor.shape[axis];
      column /= tensor.shape[axis];
    }
  }
  const std::int64_t start = first + (byte - first) / width * width;
  element.got = describe_code(got.data() + start, dtype);
  element.admissible = describe_code(other.data() + start, dtype) + ", as " + elsewhere;
  width += start - byte;
  return element;
}

void Differences::compare(const std::string& buffer, std::int64_t rank, std::int64_t row, const Bytes& got, const Bytes& other,
                          const std::string& elsewhere) {
  if (got.empty() || other.empty()) return;
  if (got.size() != other.size()) throw HarnessError("a law compared rows of two sizes in " + buffer);
  ++compared_;
  if (got == other) return;
  const TensorPlan& tensor = plan_.tensor(buffer);
  for (std::size_t byte = 0; byte < got.size();) {
    std::int64_t width = 1;
    if (got[byte] != other[byte]) {
      add(buffer, rank, row, element_at(tensor, row, static_cast<std::int64_t>(byte), got, other, elsewhere, width));
    }
    byte += static_cast<std::size_t>(width);
  }
}

void Differences::compare_rows(const std::string& buffer, std::size_t rank, const RowsLeft& got, const RowsLeft& other,
                               const std::string& elsewhere) {
  for (std::size_t row = 0; row < got.size(); ++row)
    compare(buffer, static_cast<std::int64_t>(rank), static_cast<std::int64_t>(row), got[row], other[row], elsewhere);
}

void Differences::compare_row(const Observation& got, std::int64_t rank, std::int64_t row, const Observation& other,
                              std::int64_t other_rank, std::int64_t other_row, const std::string& elsewhere) {
  for (const auto& [buffer, rows] : got.ranks[static_cast<std::size_t>(rank)]) {
    const auto& others = other.ranks[static_cast<std::size_t>(other_rank)];
    const auto found = others.find(buffer);
    if (found == others.end() || row >= static_cast<std::int64_t>(rows.size()) ||
        other_row >= static_cast<std::int64_t>(found->second.size())) {
      continue;
    }
    compare(buffer, rank, row, rows[static_cast<std::size_t>(row)], found->second[static_cast<std::size_t>(other_row)],
            elsewhere);
  }
}

void Differences::add(const std::string& buffer, std::int64_t rank, std::int64_t row, Element element) {
  Tally& tally = tallies_[{rank, buffer}];
  ++tally.count;
  tally.rows.push_back(row);
  if (tally.first.size() < kShown) tally.first.push_back(std::move(element));
}

std::vector<Violation> Differences::take() {
  std::vector<Violation> violations;
  for (auto& [where, tally] : tallies_) {
    Violation violation;
    violation.reason = Reason::law;
    violation.law = law_;
    violation.rank = where.first;
    violation.buffer = where.second;
    violation.count = tally.count;
    std::sort(tally.rows.begin(), tally.rows.end());
    tally.rows.erase(std::unique(tally.rows.begin(), tally.rows.end()), tally.rows.end());
    violation.token_rows = static_cast<std::int64_t>(tally.rows.size());
    violation.tokens = to_ranges(tally.rows);
    violation.first = std::move(tally.first);
    violations.push_back(std::move(violation));
  }
  tallies_.clear();
  return violations;
}

}  // namespace dcpcheck
