// The two ways a run can end without an answer: the user's input is wrong, or the harness itself failed.
#pragma once

#include <stdexcept>
#include <string>

namespace dcpcheck {

// Bad usage or bad input (exit 2). what() is one sentence that names the place, the value and the rule.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The harness failed: a call to the system, CUDA or OpenSSL, or a write that did not succeed (exit 99).
struct HarnessError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The user asked the run to stop (SIGINT, SIGTERM): unwinds to main, which raises `signal` again.
struct Interrupted : std::runtime_error {
  explicit Interrupted(int number) : std::runtime_error("interrupted"), signal(number) {}
  int signal;
};

// A HarnessError for a failed libc call: "<what>: <strerror(errno)>".
[[noreturn]] void throw_errno(const std::string& what);

}  // namespace dcpcheck
