// SIGINT and SIGTERM: the first asks the run to stop, a second kills at once.
#pragma once

#include <atomic>
#include <stop_token>
#include <thread>

namespace dcpcheck {

// Blocks both signals in this thread and in those it starts from now on; make it before any other thread. A thread of
// its own waits for them and stores the first one's number in `interrupted`.
class SignalWatch {
 public:
  explicit SignalWatch(std::atomic<int>& interrupted);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  std::jthread thread_;
};

// Ends this process by `signal` with its default action, so that whoever started it sees why it ended.
[[noreturn]] void die_by(int signal);

}  // namespace dcpcheck
