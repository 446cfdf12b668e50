#include "harness/commands/signals.hpp"

#include <pthread.h>
#include <csignal>
#include <cstdlib>

namespace dcpcheck {
namespace {

// Wakes the waiting thread at the end; nothing else sends it.
constexpr int kWake = SIGURG;  // ignored by default, so that a stray one from outside does no harm

// A signal that whoever started us wants ignored (nohup, a background job) stays so.
bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, kWake);
  for (const int signal : {SIGINT, SIGTERM})
    if (!is_ignored(signal)) sigaddset(&set, signal);
  return set;
}

void watch(const std::stop_token& stop, sigset_t set, std::atomic<int>& interrupted) {
  while (!stop.stop_requested()) {
    int signal = 0;
    if (sigwait(&set, &signal) != 0 || signal == kWake) continue;
    int none = 0;
    if (!interrupted.compare_exchange_strong(none, signal)) die_by(signal);
  }
}

}  // namespace

SignalWatch::SignalWatch(std::atomic<int>& interrupted) {
  const sigset_t set = watched();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::jthread([set, &interrupted](const std::stop_token& stop) { watch(stop, set, interrupted); });
}

SignalWatch::~SignalWatch() {
  thread_.request_stop();
  // Blocked in the thread, so it stays pending until the thread waits again: it cannot come too early.
  pthread_kill(thread_.native_handle(), kWake);
}

void die_by(int signal) {
  static_cast<void>(std::signal(signal, SIG_DFL));
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  pthread_kill(pthread_self(), signal);
  std::_Exit(128 + signal);  // where the signal is not deadly after all
}

}  // namespace dcpcheck
