#include "harness/core/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>

#include "harness/core/chunk.hpp"
#include "harness/core/error.hpp"
#include "harness/core/geometry_inputs.hpp"
#include "harness/core/parallel.hpp"
#include "harness/core/philox.hpp"
#include "harness/core/recipe.hpp"
#include "harness/core/values.hpp"

namespace dcpcheck {
namespace {

// How a tensor's elements are reached: runs of neighbours, one a row. A vector is one row, unless it is one of tokens. Rows
// are axis 0; those of a tensor whose axis 1 is the tokens, as of one by head, are the tokens of each step of axis 0.
struct RowView {
  std::int64_t rows = 1, columns = 1;
  std::int64_t group = 1, stride = 0;  // so many rows lie one after another, and stride elements from one such run to the next
  std::int64_t tokens = 0;             // row r is that of token r % tokens; 0: of none

  std::int64_t start(std::int64_t row) const { return row / group * stride + row % group * columns; }
  bool is_live(std::int64_t row, std::int64_t live) const { return tokens == 0 || row % tokens < live; }
};

RowView view_of(const TensorPlan& tensor) {
  RowView view;
  const auto by_token = [&](std::size_t axis) {
    return tensor.spec != nullptr && tensor.spec->shape.size() > axis && tensor.spec->shape[axis].text() == "T";
  };
  if (tensor.shape.empty()) return view;
  if (tensor.shape.size() == 1 && !by_token(0)) {
    view.columns = tensor.shape.front();
    if (tensor.strides.front() != 1) throw HarnessError(tensor.name + ": a strided vector");
    return view;
  }
  view.rows = tensor.rows();
  view.columns = tensor.columns();
  view.stride = tensor.strides.front();
  std::int64_t dense = 1;
  for (std::size_t axis = tensor.shape.size(); axis-- > 1; dense *= tensor.shape[axis]) {
    if (tensor.strides[axis] != dense) throw HarnessError(tensor.name + ": only axis 0 can be strided");
  }
  if (by_token(0)) {
    view.tokens = view.rows;
  } else if (by_token(1) && tensor.shape[1] > 0) {
    view.group = view.tokens = tensor.shape[1];
    view.columns /= view.group;
    view.rows *= view.group;
  }
  return view;
}

// Storage of the tensor: gaps filled, elements not yet.
Bytes storage_of(const TensorPlan& tensor, const RowView& view) {
  const std::int64_t last = view.rows == 0 ? 0 : view.start(view.rows - 1) + view.columns;
  if (tensor.offset < 0 || tensor.offset + last > tensor.storage_elements) {
    throw HarnessError(tensor.name + ": its storage is smaller than its elements");
  }
  Bytes storage(static_cast<std::size_t>(tensor.bytes()));
  if (tensor.storage_elements != view.rows * view.columns) fill_gap(tensor.dtype, tensor.storage_elements, storage.data());
  return storage;
}

void store_integer(const TensorPlan& tensor, std::byte* out, std::int64_t value) {
  const auto clamped = [&](std::int64_t least, std::int64_t most) {
    // Padding's int64_min has no i32: the least there is stands for it. Nothing else may be cut.
    if (value > most || (value < least && value != std::numeric_limits<std::int64_t>::min())) {
      throw InputError(tensor.name + ": " + std::to_string(value) + " does not fit " + std::string(name_of(tensor.dtype)));
    }
    return std::max(value, least);
  };
  const auto put = [out](auto typed) { std::memcpy(out, &typed, sizeof typed); };
  switch (tensor.dtype) {
    case DType::i64: return put(value);
    case DType::i32:
      return put(static_cast<std::int32_t>(
          clamped(std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max())));
    case DType::u8: return put(static_cast<std::uint8_t>(clamped(0, 255)));
    default:
      throw InputError(tensor.name + ": its recipe " + tensor.recipe + " gives integers, but it is of " +
                       std::string(name_of(tensor.dtype)));
  }
}

// [W, chunk_rows, …]: what W ranks gathered. A rank writes the rows that it owns; in the others lies what lay there.
Bytes make_gathered(const Plan& plan, const TensorPlan& tensor, int threads) {
  const Geometry& geometry = plan.value.geometry;
  if (geometry.caches.size() != 1) throw InputError(tensor.name + ": gathered rows need a case with one cache group");
  const ChunkPlan chunk = plan_chunk(geometry, geometry.caches.begin()->second);
  if (tensor.shape.size() < 2 || tensor.shape[0] != geometry.world_size || tensor.shape[1] != chunk.local_rows ||
      tensor.storage_elements != tensor.rows() * tensor.columns()) {
    throw InputError(tensor.name + ": gathered rows are [W, chunk_rows, …], dense");
  }
  Bytes storage(static_cast<std::size_t>(tensor.bytes()));
  const std::int64_t rows = tensor.shape[0] * tensor.shape[1];
  if (rows == 0) return storage;
  const std::int64_t width = tensor.storage_elements / rows;
  const std::int64_t row_bytes = width * size_of(tensor.dtype);
  const Recipe normal = parse_recipe("normal:1");
  parallel_parts(rows, threads, 16, [&](std::int64_t begin, std::int64_t end) {
    RowFiller filler(plan.value.seed, tensor.name, tensor.dtype, width, normal);
    for (std::int64_t row = begin; row < end; ++row) filler.fill(row, storage.data() + row * row_bytes);
  });
  for (std::int64_t rank = 0; rank < geometry.world_size; ++rank) {
    std::int64_t row = rank * chunk.local_rows;
    for (std::size_t request = 0; request < chunk.requests.size(); ++request) {
      const std::int64_t padded = chunk.requests[request].padded;
      const std::int64_t valid = chunk.valid_rows(request, rank);
      fill_gap(tensor.dtype, (padded - valid) * width, storage.data() + (row + valid) * row_bytes);
      row += padded;
    }
  }
  return storage;
}

Bytes make_tensor(const Plan& plan, const TensorPlan& tensor, std::int64_t rank, int threads);

const Bytes& stored_elements(const Case& value, const TensorPlan& tensor) {
  const std::string digest = parse_recipe(tensor.recipe).argument;
  const auto found = value.stored.find(digest);
  if (found == value.stored.end()) throw InputError(digest + ".bin was not read: a case's file stands beside it");
  const auto held = static_cast<std::int64_t>(found->second.bytes->size());
  if (held != tensor.rows() * tensor.columns() * size_of(tensor.dtype))
    throw InputError(digest + ".bin has " + std::to_string(held) + " bytes, but " + tensor.name + " of this case has " +
                     std::to_string(tensor.rows() * tensor.columns()) + " elements of " + std::string(name_of(tensor.dtype)));
  return *found->second.bytes;
}

// Parts of attention outputs, as many elements for each LSE of the tensor `lses`. A part without keys may hold anything:
// of four, two hold NaN, one an infinity, and one numbers as good as any.
Bytes make_partials(const Plan& plan, const TensorPlan& tensor, const std::string& lses, std::int64_t rank, int threads) {
  const TensorPlan* const found = plan.find(lses);
  const bool fits = found != nullptr && found->dtype == DType::fp32 && tensor.dtype == DType::fp32 &&
                    found->rows() == tensor.rows() &&
                    (found->columns() == 0 ? tensor.columns() == 0 : tensor.columns() % found->columns() == 0);
  if (!fits) throw InputError(tensor.name + ": partials need an fp32 tensor of LSEs, an LSE for each of its heads");
  TensorPlan plain = tensor;
  plain.recipe = "normal:1";
  Bytes storage = make_tensor(plan, plain, rank, threads);
  const Bytes held = make_tensor(plan, *found, rank, threads);
  const RowView view = view_of(tensor), lse_view = view_of(*found);
  if (tensor.columns() == 0) return storage;
  const std::int64_t width = view.columns / lse_view.columns;
  const Stream stream(plan.value.seed, tensor.name, 2);
  for (std::int64_t row = 0; row < view.rows; ++row) {
    for (std::int64_t head = 0; head < lse_view.columns; ++head) {
      float lse = 0;
      std::memcpy(&lse, held.data() + (found->offset + lse_view.start(row) + head) * size_of(found->dtype), sizeof lse);
      const std::uint64_t kind = stream.word(static_cast<std::uint64_t>(row * lse_view.columns + head)) % 4;
      if (std::isfinite(lse) || kind == 3) continue;
      std::byte* const place = storage.data() + (tensor.offset + view.start(row) + head * width) * size_of(tensor.dtype);
      const float value = kind == 2 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
      for (std::int64_t i = 0; i < width; ++i) std::memcpy(place + i * size_of(tensor.dtype), &value, sizeof value);
    }
  }
  return storage;
}

Bytes make_tensor(const Plan& plan, const TensorPlan& tensor, std::int64_t rank, int threads) {
  if (parse_recipe(tensor.recipe).kind == Recipe::Kind::gathered) return make_gathered(plan, tensor, threads);
  if (const Recipe recipe = parse_recipe(tensor.recipe); recipe.kind == Recipe::Kind::partials) {
    return make_partials(plan, tensor, recipe.argument, rank, threads);
  }
  const RowView view = view_of(tensor);
  Bytes storage = storage_of(tensor, view);
  const std::int64_t size = size_of(tensor.dtype);
  const auto place = [&](std::int64_t row) { return storage.data() + (tensor.offset + view.start(row)) * size; };
  const Recipe recipe = parse_recipe(tensor.recipe);
  if (recipe.kind == Recipe::Kind::stored) {
    const Bytes& stored = stored_elements(plan.value, tensor);
    const std::int64_t row_bytes = view.columns * size;
    for (std::int64_t row = 0; row < view.rows && row_bytes > 0; ++row)
      std::memcpy(place(row), stored.data() + row * row_bytes, static_cast<std::size_t>(row_bytes));
    return storage;
  }
  if (recipe.of_geometry()) {
    const std::vector<std::int64_t> values = geometry_values(plan, tensor, rank);
    for (std::int64_t row = 0; row < view.rows; ++row) {
      for (std::int64_t column = 0; column < view.columns; ++column) {
        store_integer(tensor, place(row) + column * size, values[static_cast<std::size_t>(row * view.columns + column)]);
      }
    }
    return storage;
  }
  // Ranks differ where the tensor is said to; their names differ then, too.
  const std::string name =
      tensor.spec != nullptr && tensor.spec->per_rank ? tensor.name + "@" + std::to_string(rank) : tensor.name;
  // Rows of padding tokens hold what the case says, whatever the tensor's own recipe. Integers have no such rows.
  const Recipe padding = parse_recipe(plan.value.geometry.padding.values);
  const std::int64_t grain = std::max<std::int64_t>(1, (1 << 14) / std::max<std::int64_t>(view.columns, 1));
  parallel_parts(view.rows, threads, grain, [&](std::int64_t begin, std::int64_t end) {
    RowFiller filler(plan.value.seed, name, tensor.dtype, view.columns, recipe);
    std::optional<RowFiller> padder;  // made where it is needed: not every recipe fills every tensor
    for (std::int64_t row = begin; row < end; ++row) {
      if (!is_float(tensor.dtype) || view.is_live(row, plan.live)) {
        filler.fill(row, place(row));
        continue;
      }
      if (!padder) padder.emplace(plan.value.seed, name, tensor.dtype, view.columns, padding);
      padder->fill(row, place(row));
    }
  });
  return storage;
}

// The records of all cached tokens, on the ranks that own them.
std::vector<std::map<std::int64_t, Bytes>> make_prefix(const Plan& plan, const TensorPlan& tensor, int threads) {
  const Geometry& geometry = plan.value.geometry;
  std::vector<std::map<std::int64_t, Bytes>> out(static_cast<std::size_t>(geometry.tp));
  std::int64_t cached = 0;
  for (const Request& request : geometry.batch) cached += request.cached;
  if (cached == 0) return out;
  const GroupMap map(plan, tensor.cache.group);
  if (!map.by_position()) return out;

  std::vector<Stream> streams;
  std::int64_t record_bytes = 0;
  for (const FieldPlan& field : tensor.cache.fields) {
    streams.emplace_back(plan.value.seed, tensor.name + "." + field.name);
    record_bytes += field.bytes();
  }
  // By request and position, so that a record is the same whoever owns it.
  Bytes records(static_cast<std::size_t>(cached * record_bytes));
  parallel_parts(cached, threads, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t record = begin; record < end; ++record) {
      std::byte* at = records.data() + record * record_bytes;
      for (std::size_t i = 0; i < streams.size(); ++i) {
        const FieldPlan& field = tensor.cache.fields[i];
        fill_field(streams[i], field.dtype, field.count, record, at);
        at += field.bytes();
      }
    }
  });
  std::int64_t record = 0;
  for (std::size_t request = 0; request < geometry.batch.size(); ++request) {
    for (std::int64_t position = 0; position < geometry.batch[request].cached; ++position, ++record) {
      const std::byte* const bytes = records.data() + record * record_bytes;
      for (std::int64_t rank = 0; rank < geometry.tp; ++rank) {
        const std::int64_t slot = map.slot(static_cast<std::int64_t>(request), position, rank);
        if (slot >= 0) out[static_cast<std::size_t>(rank)].emplace(slot, Bytes(bytes, bytes + record_bytes));
      }
    }
  }
  return out;
}

// A cache that is only read: the records of the cached tokens, and NaNs wherever nothing was ever written.
Bytes make_cache(const TensorPlan& tensor, const std::map<std::int64_t, Bytes>& records) {
  Bytes storage(static_cast<std::size_t>(tensor.bytes()), std::byte{0xFF});
  for (const auto& [slot, record] : records) place_record(tensor.cache, slot, record, storage.data());
  return storage;
}

}  // namespace

void check_recipe_fits(const Case& value, const TensorPlan& input) {
  const Recipe recipe = parse_recipe(input.recipe);
  if (recipe.kind == Recipe::Kind::stored) {
    stored_elements(value, input);
    return;
  }
  if (!recipe.of_geometry()) check_fills(input.name, input.dtype, view_of(input).columns, recipe);
}

void place_record(const CachePlan& cache, std::int64_t slot, const Bytes& record, std::byte* base) {
  std::int64_t from = 0;
  for (const FieldPlan& field : cache.fields) {
    std::memcpy(base + cache.address(slot, field), record.data() + from, static_cast<std::size_t>(field.bytes()));
    from += field.bytes();
  }
}

const Bytes& Inputs::get(std::string_view name, std::int64_t rank) const {
  if (rank >= 0 && rank < static_cast<std::int64_t>(ranks.size())) {
    const auto& own = ranks[static_cast<std::size_t>(rank)];
    if (const auto found = own.find(name); found != own.end()) return found->second;
  }
  if (const auto found = shared.find(name); found != shared.end()) return found->second;
  throw HarnessError("there is no input " + std::string(name) + " on rank " + std::to_string(rank));
}

Bytes make_input(const Plan& plan, const TensorPlan& tensor, std::int64_t rank, int threads) {
  if (tensor.role != Role::in || !tensor.spec->cache.empty()) throw HarnessError(tensor.name + " is no input of its own");
  return make_tensor(plan, tensor, rank, threads);
}

Inputs make_inputs(const Plan& plan, int threads) {
  Inputs inputs;
  inputs.ranks.resize(static_cast<std::size_t>(plan.value.geometry.tp));
  for (const TensorPlan& tensor : plan.tensors) {
    if (!tensor.cache.group.empty()) inputs.prefix[tensor.name] = make_prefix(plan, tensor, threads);
    if (tensor.role != Role::in) continue;
    if (tensor.spec == nullptr || !tensor.spec->per_rank) {
      inputs.shared[tensor.name] = make_tensor(plan, tensor, 0, threads);
      continue;
    }
    for (std::int64_t rank = 0; rank < plan.value.geometry.tp; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      inputs.ranks[at][tensor.name] = tensor.cache.group.empty() ? make_tensor(plan, tensor, rank, threads)
                                                                 : make_cache(tensor, inputs.prefix[tensor.name][at]);
    }
  }
  return inputs;
}

}  // namespace dcpcheck
