// What reorg_context must give: the chunk's tokens dealt out one after the other, each put where its contract wants it.
#include <cstring>
#include <iterator>
#include <vector>

#include "harness/core/dtype.hpp"
#include "harness/core/error.hpp"
#include "harness/core/parallel.hpp"
#include "harness/oracle/admissible.hpp"
#include "reference/deal.hpp"
#include "reference/decode.hpp"

namespace dcpcheck::reference {

Expected reorg_context(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options);

namespace {

// Where a row of the context lies: the rank that gathered it, and which of the rank's rows of the request it is.
struct Piece {
  std::int64_t rank, row;
};

// The rows of one request's chunk, in the order of the contract.
std::vector<Piece> pieces_of(const Geometry& geometry, std::int64_t tokens, bool rank_major) {
  // From the chunk's first token on, as if the request began there: a chunk begins with a whole turn of the ranks.
  const std::int64_t block = geometry.caches.at("mla").block_size;
  const Deal deal = deal_positions(tokens, block, geometry.world_size, geometry.interleave);
  std::vector<Piece> pieces;
  for (std::int64_t pass = 0; pass < (rank_major ? geometry.world_size : 1); ++pass) {
    for (std::int64_t token = 0; token < tokens; ++token) {
      const auto at = static_cast<std::size_t>(token);
      if (!rank_major || deal.owner[at] == pass) pieces.push_back({deal.owner[at], deal.local[at]});
    }
  }
  return pieces;
}

}  // namespace

Expected reorg_context(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options) {
  const Geometry& geometry = plan.value.geometry;
  const TensorPlan& gathered = plan.tensor("gathered");
  const std::byte* const from = inputs.get("gathered", rank).data();
  const Reader local(plan, inputs, "local_offsets", rank), context(plan, inputs, "context_offsets", rank);
  const bool rank_major = plan.value.option("order") == "rank_major";

  Admissible rows;
  rows.rows = plan.tensor("context").rows();
  rows.columns = plan.tensor("context").columns();
  rows.exact = true;
  const std::int64_t row_bytes = rows.columns * size_of(DType::bf16);
  rows.codes.resize(static_cast<std::size_t>(rows.rows * row_bytes));
  parallel_parts(std::ssize(geometry.batch), options.threads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t request = begin; request < end; ++request) {
      const std::int64_t padded = local.integer(request + 1) - local.integer(request);
      std::int64_t to = context.integer(request);
      for (const Piece& piece : pieces_of(geometry, context.integer(request + 1) - to, rank_major)) {
        if (piece.row >= padded) throw HarnessError("reorg_context: a row lies past the padded length of its request");
        const std::int64_t row = piece.rank * gathered.shape.at(1) + local.integer(request) + piece.row;
        std::memcpy(rows.codes.data() + to++ * row_bytes, from + row * row_bytes, static_cast<std::size_t>(row_bytes));
      }
    }
  });
  Expected expected;
  expected.emplace("context", std::move(rows));
  return expected;
}

}  // namespace dcpcheck::reference
