// What gather_cache must give: the context's positions dealt out one after the other, and the records of those that
// this rank got, in that order.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <vector>

#include "harness/core/dtype.hpp"
#include "harness/core/e4m3.hpp"
#include "harness/core/error.hpp"
#include "harness/core/parallel.hpp"
#include "harness/oracle/admissible.hpp"
#include "reference/deal.hpp"
#include "reference/decode.hpp"
#include "reference/error_bounds.hpp"

namespace dcpcheck::reference {

Expected gather_cache(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options);

namespace {

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// The cache of one rank, read a record at a time.
class Records {
 public:
  Records(const Plan& plan, const Inputs& inputs, std::int64_t rank)
      : cache_(plan.tensor("mla_cache").cache), data_(inputs.get("mla_cache", rank).data()) {
    if (plan.find("mla_scale") != nullptr) scale_ = Reader(plan, inputs, "mla_scale", rank).number(0);
  }

  // Whether a record is copied as it is: all of it bf16.
  bool copied() const {
    return std::all_of(cache_.fields.begin(), cache_.fields.end(),
                       [](const FieldPlan& field) { return field.dtype == DType::bf16; });
  }

  // The bf16 codes of the record in `slot`.
  void copy(std::int64_t slot, std::byte* out) const {
    for (const FieldPlan& field : cache_.fields) {
      std::memcpy(out, at(slot, field), static_cast<std::size_t>(field.bytes()));
      out += field.bytes();
    }
  }

  // The values of the record in `slot`, and what an fp32 evaluation may be off by. A code times its scale has 28
  // significant bits: exact here, one rounding in fp32. What the record has in bf16 is no product, and exact.
  void dequantise(std::int64_t slot, double* value, double* error) const {
    for (const FieldPlan& field : cache_.fields) {
      if (field.dtype == DType::fp32) continue;  // the scales of another field
      const FieldPlan* const scales = scales_of(field);
      for (std::int64_t i = 0; i < field.count; ++i, ++value, ++error) {
        const std::byte* const from = at(slot, field) + i * size_of(field.dtype);
        if (field.dtype == DType::bf16) {
          *value = std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(from)} << 16);
          *error = 0;
        } else {
          const double scale =
              scales == nullptr ? scale_ : load<float>(at(slot, *scales) + i / field.tile * size_of(scales->dtype));
          *value = decode_e4m3(load<std::uint8_t>(from)) * scale;
          *error = std::isfinite(*value) ? slack * (u * std::abs(*value) + underflow) : 0;
        }
      }
    }
  }

 private:
  const std::byte* at(std::int64_t slot, const FieldPlan& field) const { return data_ + cache_.address(slot, field); }

  // The field of the same record that `codes` has its scales in; none where it has the launch's one scale.
  const FieldPlan* scales_of(const FieldPlan& codes) const {
    for (const FieldPlan& field : cache_.fields) {
      if (field.name == codes.scaled_by) return &field;
    }
    return nullptr;
  }

  const CachePlan& cache_;
  const std::byte* data_;
  double scale_ = 1;
};

// The slots of the chunk's rows of one request that `self` of `ranks` ranks owns, in the order of their positions.
std::vector<std::int64_t> slots_of_chunk(const Plan& plan, const Reader& table, std::int64_t request, std::int64_t self,
                                         std::int64_t ranks) {
  const Geometry& geometry = plan.value.geometry;
  const CacheGroup& group = geometry.caches.at("mla");
  const std::int64_t cached = geometry.batch[static_cast<std::size_t>(request)].cached;
  // A group that is not sharded lies on every rank as a whole, as if there were one.
  const std::int64_t run = ranks == 1 ? group.block_size : geometry.interleave;
  const Deal deal = deal_positions(cached, group.block_size, ranks, run);
  std::vector<std::int64_t> slots;
  for (std::int64_t position = 0; position < cached; ++position) {
    const bool before = position < geometry.chunk.start;
    const bool after = geometry.chunk.tokens != 0 && position >= geometry.chunk.start + geometry.chunk.tokens;
    const auto at = static_cast<std::size_t>(position);
    if (before || after || deal.owner[at] != self) continue;
    const std::int64_t block = table.integer(request, deal.local[at] / group.kernel_block_size);
    slots.push_back(block * group.kernel_block_size + deal.local[at] % group.kernel_block_size);
  }
  return slots;
}

}  // namespace

Expected gather_cache(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options) {
  const Geometry& geometry = plan.value.geometry;
  const std::int64_t ranks = geometry.caches.at("mla").slot_mapping == "dcp" ? geometry.world_size : 1;
  const TensorPlan& workspace = plan.tensor("workspace");
  const Records records(plan, inputs, rank);
  const Reader table(plan, inputs, "block_table", rank), offsets(plan, inputs, "local_offsets", rank);

  // Rows past a rank's own are never judged and stay 0.
  Admissible rows;
  rows.rows = workspace.rows();
  rows.columns = workspace.columns();
  rows.exact = records.copied();
  const std::int64_t elements = rows.rows * rows.columns;
  if (rows.exact) {
    rows.codes.resize(static_cast<std::size_t>(elements * size_of(DType::bf16)));
  } else {
    rows.value.resize(static_cast<std::size_t>(elements));
    rows.error.resize(static_cast<std::size_t>(elements));
  }
  struct Source {
    std::int64_t row = 0, slot = 0;
  };
  std::vector<Source> sources;
  for (std::int64_t request = 0; request < std::ssize(geometry.batch); ++request) {
    std::int64_t row = offsets.integer(request);
    for (const std::int64_t slot : slots_of_chunk(plan, table, request, rank % ranks, ranks)) {
      if (row >= offsets.integer(request + 1))
        throw HarnessError("gather_cache: a rank has more rows of a request than its padded length");
      sources.push_back({row++, slot});
    }
  }
  parallel_parts(std::ssize(sources), options.threads, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto [row, slot] = sources[static_cast<std::size_t>(i)];
      const std::int64_t first = row * rows.columns;
      if (rows.exact) {
        records.copy(slot, rows.codes.data() + first * size_of(DType::bf16));
      } else {
        records.dequantise(slot, rows.value.data() + first, rows.error.data() + first);
      }
    }
  });
  Expected expected;
  expected.emplace("workspace", std::move(rows));
  return expected;
}

}  // namespace dcpcheck::reference
