// Calls of the CUDA runtime and the driver, checked.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <string>

#include "harness/core/error.hpp"

namespace dcpcheck {

[[noreturn]] inline void throw_cuda(const char* call, const std::string& why) {
  throw HarnessError(std::string(call) + ": " + why);
}

inline void check_cuda(cudaError_t status, const char* call) {
  if (status != cudaSuccess) throw_cuda(call, std::string(cudaGetErrorName(status)) + ", " + cudaGetErrorString(status));
}

#define DCPCHECK_CUDA_CALL(call) ::dcpcheck::check_cuda((call), #call)

// The driver's function `name` as of CUDA `version` (12040: 12.4), found at run time; false where the driver has none.
template <class Function>
bool find_driver_function(const char* name, unsigned version, Function& function) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  DCPCHECK_CUDA_CALL(cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess) return false;
  function = reinterpret_cast<Function>(address);
  return true;
}

// One that every driver of CUDA 12 has. Throws HarnessError where this one has not.
template <class Function>
void require_driver_function(const char* name, Function& function) {
  if (!find_driver_function(name, 12000, function)) throw_cuda(name, "the driver does not have it");
}

// The driver's virtual memory calls, found at run time, so that the program starts where there is no driver.
struct Driver {
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) free_address = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
  decltype(&cuGetErrorName) error_name = nullptr;

  Driver() {
    require_driver_function("cuMemGetAllocationGranularity", granularity);
    require_driver_function("cuMemAddressReserve", reserve);
    require_driver_function("cuMemAddressFree", free_address);
    require_driver_function("cuMemCreate", create);
    require_driver_function("cuMemRelease", release);
    require_driver_function("cuMemMap", map);
    require_driver_function("cuMemUnmap", unmap);
    require_driver_function("cuMemSetAccess", set_access);
    require_driver_function("cuGetErrorName", error_name);
  }

  void check(CUresult status, const char* call) const {
    if (status == CUDA_SUCCESS) return;
    const char* text = nullptr;
    if (error_name(status, &text) != CUDA_SUCCESS || !text) text = "unknown error";
    throw_cuda(call, text);
  }
};

}  // namespace dcpcheck
