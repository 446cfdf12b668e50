// How a kernel of kernels/ becomes a kernel under test. One <op>.hpp an op says how its Args are filled from a launch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/core/error.hpp"
#include "harness/exec/kernel.hpp"
#include "kernels/block.cuh"
#include "kernels/mla_layout.hpp"
#include "kernels/rope.cuh"

namespace dcpcheck::builtin {

// The view of a tensor of the plan; HarnessError where the launch lacks it.
const View& view(const Launch& launch, std::string_view name);
// The address of its element [0, …, 0]; nullptr where the plan has no such tensor.
void* address(const Launch& launch, std::string_view name);
// Elements from one row to the next; 0 where the plan has no such tensor.
std::int64_t row_stride(const Launch& launch, std::string_view name);

// The rope table `name`, of pairs as the flag `interleaved` has them; one of width 0 where the plan has no such tensor.
kernels::RopeTable rope_table(const Launch& launch, std::string_view name, std::string_view interleaved);

// The case's param mla_layout.
kernels::MlaLayout mla_layout(const Launch& launch);

template <class T>
T* pointer(const Launch& launch, std::string_view name) {
  return static_cast<T*>(address(launch, name));
}

// Kernel::lanes of an op's kernels: those of Block's reductions, but where its adapter says otherwise.
template <class Adapter>
constexpr int lanes_of() {
  if constexpr (requires { Adapter::lanes; }) {
    return Adapter::lanes;
  } else {
    return kernels::kLanes;
  }
}

// Whether the decisions of a fault say where it is from, what it must be caught for and what catches it.
template <class Decisions>
constexpr bool says_how_it_is_caught() {
  constexpr auto said = [](std::string_view text) { return !text.empty(); };
  return said(Decisions::doc) && said(Decisions::source) && said(Decisions::reason) && said(Decisions::caught_by);
}

// "builtin:<op>" or "builtin:<op>@<fault>". `Adapter` is the op's: its Args, args(launch) and launch_host. `cuda` queues
// the kernel on a stream; nullptr: this build has no CUDA.
template <class Adapter, class Decisions>
Kernel make(const std::string& op, kernels::CudaResult (*cuda)(const typename Adapter::Args&, void*)) {
  Kernel kernel;
  kernel.op = op;
  kernel.fault = Decisions::name;
  kernel.name = "builtin:" + op;
  if (!kernel.fault.empty()) kernel.name += "@" + kernel.fault;
  kernel.doc = Decisions::doc;
  kernel.source = Decisions::source;
  kernel.reason = Decisions::reason;
  kernel.caught_by = Decisions::caught_by;
  kernel.lanes = lanes_of<Adapter>();
  if constexpr (requires { Decisions::blocks_collide; }) kernel.blocks_collide = Decisions::blocks_collide;
  // A fault whose values are right, but not by our sums.
  if constexpr (requires { Decisions::any_order; }) kernel.lanes = 0;
  kernel.host = [](const Launch& launch) -> LaunchError {
    return Adapter::template launch_host<Decisions>(Adapter::args(launch), launch.threads);
  };
  if (cuda != nullptr) {
    kernel.cuda = [name = kernel.name, cuda](const Launch& launch) -> LaunchError {
      const kernels::CudaResult result = cuda(Adapter::args(launch), launch.stream);
      if (!result.lost.empty()) throw HarnessError(name + ": CUDA: " + result.lost);
      return result.refused;
    };
  }
  return kernel;
}

}  // namespace dcpcheck::builtin
