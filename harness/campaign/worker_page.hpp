// A page that a worker and its campaign share: what the worker is at, for when it can no longer say so itself.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>

namespace dcpcheck {

struct WorkerPage {
  std::atomic<std::int64_t> since{0};     // steady_clock, in nanoseconds, when it began; 0: at no case
  std::atomic<std::uint32_t> started{0};  // a kernel's first launch in this process may compile: it has longer
  char law[60] = {};                      // that is being asked; "": every element is judged

  void begin(bool first) {
    started.store(first ? 0 : 1);
    at("");
    since.store(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  void at(const std::string& name) {
    std::memset(law, 0, sizeof law);
    std::memcpy(law, name.data(), std::min(name.size(), sizeof law - 1));
  }
  void end() { since.store(0); }
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace dcpcheck
