// A kernel under test: something that can be launched for one rank of a case.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/core/plan.hpp"

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
};

// A launch that was refused, as CUDA refuses a grid: "" where it was accepted.
using LaunchError = std::string;

struct Kernel {
  std::string name;  // "builtin:fused_norm_rope@k_gated"
  std::string op;
  std::string fault;                               // empty: none is known
  std::string doc;                                 // what the fault does
  std::string source;                              // where it was seen: "vLLM 54907"; "derived" where it was not
  std::string reason;                              // the Reason that it must be caught for, as name_of has it
  std::string caught_by;                           // "admissible_values", "write_set", or the law that catches it
  int lanes = 0;                                   // see ReferenceOptions
  std::function<LaunchError(const Launch&)> host;  // empty: cannot run there
  std::function<LaunchError(const Launch&)> cuda;
};

}  // namespace dcpcheck
