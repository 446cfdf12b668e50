// A kernel of somebody else's, in a process of its own that speaks the protocol of harness/adapters/PROTOCOL.md.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>

#include "harness/core/op.hpp"
#include "harness/exec/kernel.hpp"

namespace dcpcheck {

// What a spec of such a kernel begins with.
inline constexpr std::string_view kProcess = "exec:";

struct ProcessOptions {
  std::chrono::milliseconds start{300'000};       // until the ready line: what is compiled at run time is compiled then
  std::chrono::milliseconds launch{60'000};       // until a launch's answer
  const std::atomic<int>* interrupted = nullptr;  // see RunOptions
};

// Of DCPCHECK_START_SECONDS and DCPCHECK_LAUNCH_SECONDS, where they are set. Throws InputError where one is no number of
// seconds.
ProcessOptions process_options_from_environment();

// The kernel in the process that `spec` names ("exec:<command>", for /bin/sh). It is started here, and kept; launches that go
// on at the same time have a process each. They end with the last copy of the kernel. Whatever a process does in a launch is
// the launch's LaunchError. Throws InputError where it does not start, or declares what its op does not have.
Kernel load_process(const std::string& spec, const Ops& ops, const ProcessOptions& options = {});

}  // namespace dcpcheck
