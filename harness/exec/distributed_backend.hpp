// A backend whose ranks are processes of their own, which come to a meeting (rank_service.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "harness/exec/backend.hpp"

namespace dcpcheck {

struct Distribution {
  std::string meeting;     // the path of the socket that ranks come to
  std::int64_t ranks = 1;  // how many there are; rank r of a case is the (r mod ranks)th
  std::string backend;     // what each of them runs: "host", "cuda"
  Spread::Transport transport = Spread::Transport::automatic;
  const std::atomic<int>* interrupted = nullptr;
  const std::atomic<bool>* given_up = nullptr;  // once true, some rank's process will not come (any more)
};

// Waits until all ranks have come. A rank that ends or is late ends the case that it was in as crash or hang; one that is late
// is killed. The next launch waits for another process of its to come. Throws HarnessError where one does not come, and
// InputError where NCCL is asked for and not to be had.
std::unique_ptr<Backend> make_distributed_backend(const Distribution& distribution);

}  // namespace dcpcheck
