// What the program runs on and was built with.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/exec/backend.hpp"
#include "harness/report/report.hpp"

namespace dcpcheck {

// `backend`: what the run uses, nullptr where it uses none; driver and device are of the CUDA backend alone.
Machine describe_machine(int threads, const Backend* backend);

// What the CUDA runtime says, for people: one line each. Empty where this build has no CUDA backend.
struct CudaFacts {
  std::string toolkit, driver;
  std::vector<std::string> devices;
};
CudaFacts cuda_facts();

// The instruction sets of this CPU that matter to the host kernels' speed: "avx2", …
std::vector<std::string> cpu_features();

// The packages that this was compiled against, with their versions.
std::vector<std::pair<std::string, std::string>> packages();

}  // namespace dcpcheck
