// A loop over [0, n), cut into one run of neighbours a thread. What each index does must not depend on the others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace dcpcheck {

// Calls body(begin, end) for `threads` parts of [0, n); a part has at least `grain` indices. An exception out of any
// part is thrown again here, once all have ended.
template <class Body>
void parallel_parts(std::int64_t n, int threads, std::int64_t grain, Body body) {
  const std::int64_t parts = std::clamp<std::int64_t>(n / std::max<std::int64_t>(grain, 1), 1, std::max(threads, 1));
  if (parts == 1) {
    if (n > 0) body(std::int64_t{0}, n);
    return;
  }
  std::exception_ptr error;
  std::mutex guard;
  {
    std::vector<std::jthread> team;
    team.reserve(static_cast<std::size_t>(parts));
    for (std::int64_t part = 0; part < parts; ++part) {
      team.emplace_back([&, part] {
        try {
          body(n * part / parts, n * (part + 1) / parts);
        } catch (...) {
          const std::scoped_lock lock(guard);
          if (!error) error = std::current_exception();
        }
      });
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace dcpcheck
