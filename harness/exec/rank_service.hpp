// A rank in a process of its own: what the process that judges asks of it, and how it answers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "harness/core/op.hpp"
#include "harness/exec/backend.hpp"
#include "harness/exec/wire.hpp"

namespace dcpcheck {

// What a rank can be asked to do. A message begins with one of these.
enum class Ask : std::int64_t {
  place = 1,  // a placement's number, the case, its rank, its inputs: nothing is answered
  run,        // a placement's number, a kernel, threads, an arena image: how the launch went, the image, what it touched
  drop,       // a placement's number: nothing is answered
  make_id,    // NCCL's id for a new group
  meet,       // the id, the rank's number and how many there are: "" once all have met
  exchange,   // messages to other ranks, and what is to come from them: what came
  give_up,    // the others will not come; only while it is at `meet` or `exchange`, else it means nothing
};

// What an answer begins with.
enum class Reply : std::int64_t {
  done = 0,
  failed,     // and why; the rank's process ends
  abandoned,  // and why: the others did not come; it can be asked other things
};

// What a rank says of itself when it comes.
struct RankHello {
  std::int64_t rank = 0;
  std::string device;  // "0: NVIDIA H200"
  std::string nccl;    // its version; empty: not to be had
};
Bytes hello_of(const RankHello& hello);
RankHello read_hello(const Bytes& message);

struct RankService {
  const Ops* ops = nullptr;
  // The kernel of `op` called so. Throws InputError where there is none.
  std::function<const Kernel&(const std::string& name, const std::string& op)> kernel;
  Backend* backend = nullptr;  // with one seat
  int device = -1;             // of CUDA; -1: NCCL is not to be had
  RankHello hello;
  const std::atomic<int>* interrupted = nullptr;
};

// Says hello and does what it is asked until the other side is gone. Throws HarnessError, once it has answered so, where it can
// do no more.
void serve_rank(const RankService& service, Wire& wire);

}  // namespace dcpcheck
