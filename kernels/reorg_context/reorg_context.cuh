// reorg_context: what W ranks gathered of a chunk, put together to each request's context rows. One block a row of the
// context.
//
// A chunk starts with a whole turn of the ranks, so that its i-th token is the i-th that is dealt: I to each rank. Every
// rank's piece has the padded length of each request; the rows past a rank's own length hold whatever lay there.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/batch.cuh"
#include "kernels/block.cuh"

namespace kernels::reorg_context {

// A launch's parameters. Strides count elements; all of them are bf16.
struct Args {
  const std::uint16_t* gathered = nullptr;  // [world_size, local rows, width], dense
  std::int64_t piece_stride = 0;            // from one rank's piece to the next
  std::int64_t width = 0;
  const std::int32_t* local_offsets = nullptr;    // [requests + 1]: rows of a piece, by padded lengths
  const std::int32_t* context_offsets = nullptr;  // [requests + 1]: rows of the context, by tokens
  std::int64_t requests = 0;
  std::uint16_t* context = nullptr;
  std::int64_t context_stride = 0;
  std::int64_t rows = 0;  // of the context: context_offsets[requests]
  std::int64_t world_size = 1;
  std::int64_t interleave = 1;
  bool rank_major = false;  // rank 0's rows of a request, then rank 1's …; else by position
};

// Where a row of the context comes from: which piece, and which row of the request's there.
struct Source {
  std::int64_t rank = 0, row = 0;
};

// The decisions of the kernel as it should be. A fault overrides one of them.
struct Fixed {
  static constexpr const char* name = "";
  static constexpr const char* doc = "";
  static constexpr const char* source = "";
  static constexpr const char* reason = "";
  static constexpr const char* caught_by = "";

  // How many tokens in a row one rank owns.
  static DCPCHECK_HD std::int64_t interleave(const Args& args) { return args.interleave; }
  // How many rows of a request are taken from a piece that has `padded` of them, `owned` being the rank's.
  static DCPCHECK_HD std::int64_t taken(std::int64_t owned, std::int64_t padded) {
    (void)padded;
    return owned;
  }
  // The request whose place in the pieces is taken for that of `request`.
  static DCPCHECK_HD std::int64_t placed_as(std::int64_t request) { return request; }
  // Where among the pieces that of a rank lies.
  static DCPCHECK_HD std::int64_t piece_of(std::int64_t rank, std::int64_t world_size) {
    (void)world_size;
    return rank;
  }
};

// Whether `Decisions` overrides any: a fault that does not, by a slip in a name, would be the right kernel.
template <class Decisions>
constexpr bool overrides_a_decision() {
  return !same_function<&Decisions::interleave, &Fixed::interleave> || !same_function<&Decisions::taken, &Fixed::taken> ||
         !same_function<&Decisions::placed_as, &Fixed::placed_as> || !same_function<&Decisions::piece_of, &Fixed::piece_of>;
}

// What one block does: row block.x of the context.
template <class Decisions>
struct Body {
  static DCPCHECK_HD void run(const Args& args, const Block& block) {
    const std::int64_t row = block.x;
    const std::int64_t request = request_of(args.context_offsets, args.requests, row);
    const std::int64_t i = row - args.context_offsets[request];
    const Source source = args.rank_major ? by_rank(args, request, i) : by_position(args, i);
    const std::int64_t at = args.local_offsets[Decisions::placed_as(request)] + source.row;
    const std::int64_t piece = Decisions::piece_of(source.rank, args.world_size);
    const std::uint16_t* const from = args.gathered + piece * args.piece_stride + at * args.width;
    std::uint16_t* const to = args.context + row * args.context_stride;
    block.each(args.width, [=](std::int64_t column) { to[column] = from[column]; });
  }

 private:
  // The i-th token of the chunk.
  static DCPCHECK_HD Source by_position(const Args& args, std::int64_t i) {
    const std::int64_t run = Decisions::interleave(args);
    return {i / run % args.world_size, i / (run * args.world_size) * run + i % run};
  }

  // The i-th row of the request where the ranks' rows stand one after the other.
  static DCPCHECK_HD Source by_rank(const Args& args, std::int64_t request, std::int64_t i) {
    const std::int64_t run = Decisions::interleave(args);
    const std::int64_t turn = run * args.world_size;
    const std::int64_t tokens = args.context_offsets[request + 1] - args.context_offsets[request];
    const std::int64_t padded = args.local_offsets[request + 1] - args.local_offsets[request];
    std::int64_t rank = 0;
    for (; rank < args.world_size - 1; ++rank) {
      std::int64_t rest = tokens % turn - rank * run;
      rest = rest < 0 ? 0 : rest;
      const std::int64_t owned = tokens / turn * run + (rest < run ? rest : run);
      const std::int64_t taken = Decisions::taken(owned, padded);
      if (i < taken) break;
      i -= taken;
    }
    return {rank, i};
  }
};

// The launch's grid: a block a row of the context.
inline Grid grid(const Args& args) { return {args.rows, 1, 1}; }

// Runs the kernel on the host. Returns why the launch is refused, or "".
template <class Decisions>
std::string launch_host(const Args& args, int threads) {
  return kernels::launch_host(grid(args), 0, threads, [&](const Block& block) { Body<Decisions>::run(args, block); });
}

}  // namespace kernels::reorg_context
