// A kernel under test: something that can be launched for one rank of a case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/plan.hpp"
#include "harness/exec/declaration.hpp"

namespace dcpcheck {

// A tensor as a kernel is given it: the address of element [0, …, 0], on the host or on the device.
struct View {
  void* data = nullptr;
  DType dtype = DType::u8;
  std::vector<std::int64_t> shape, strides;  // elements; caches: {blocks, Bk, record_bytes} in bytes
};

struct Launch {
  const Plan& plan;
  std::int64_t rank = 0;
  std::map<std::string, View, std::less<>> tensors;  // every tensor of the plan, in and out
  int threads = 1;                                   // host
  void* stream = nullptr;                            // CUDA: a cudaStream_t
  std::span<std::byte> arena = {};                   // where outputs, caches and their guards lie, on the host or on the device
};

// Why a launch left nothing to judge; empty() where it was accepted.
struct LaunchError {
  enum class Kind : std::uint8_t {
    refused,              // as CUDA refuses a grid
    skipped,              // the kernel is not for this case, and says so
    floating_point_mode,  // the kernel left its thread's floating-point mode changed
    beside_inputs,        // the kernel wrote where nothing of the launch lies, next to an input
    process_ended,        // the kernel's process crashed or left
    timed_out,            // the kernel's process did not answer in time
    bad_answer,           // the kernel's process answered something that is no answer
  };

  LaunchError() = default;
  LaunchError(std::string refusal) : why(std::move(refusal)) {}
  LaunchError(Kind what, std::string reason) : kind(what), why(std::move(reason)) {}

  bool empty() const { return why.empty(); }

  Kind kind = Kind::refused;
  std::string why;
};

struct Kernel {
  std::string name;  // "builtin:fused_norm_rope@k_gated", "lib:./mine.so", "exec:python3 mine.py"
  std::string op;
  std::string fault;                               // empty: none is known
  std::string doc;                                 // what the fault does
  std::string source;                              // where it was seen: "vLLM 54907"; "derived" where it was not
  std::string reason;                              // the Reason that it must be caught for, as name_of has it
  std::string caught_by;                           // "admissible_values", "write_set", or the law that catches it
  int lanes = 0;                                   // see ReferenceOptions
  bool blocks_collide = false;                     // the fault lets blocks write one place: on a GPU the last one wins
  std::function<LaunchError(const Launch&)> host;  // empty: cannot run there
  std::function<LaunchError(const Launch&)> cuda;
  std::optional<Declaration> declared;  // of a kernel from elsewhere; absent: it is for every case of its op
};

// Why the kernel is not for the plan's case, by what it declares; empty() where it is.
inline LaunchError decline(const Kernel& kernel, const Plan& plan) {
  if (!kernel.declared) return {};
  return {LaunchError::Kind::skipped, why_not(*kernel.declared, plan)};
}

}  // namespace dcpcheck
