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
    find("cuMemGetAllocationGranularity", granularity);
    find("cuMemAddressReserve", reserve);
    find("cuMemAddressFree", free_address);
    find("cuMemCreate", create);
    find("cuMemRelease", release);
    find("cuMemMap", map);
    find("cuMemUnmap", unmap);
    find("cuMemSetAccess", set_access);
    find("cuGetErrorName", error_name);
  }

  void check(CUresult status, const char* call) const {
    if (status == CUDA_SUCCESS) return;
    const char* text = nullptr;
    if (error_name(status, &text) != CUDA_SUCCESS || !text) text = "unknown error";
    throw_cuda(call, text);
  }

 private:
  template <class Function>
  static void find(const char* name, Function& function) {
    if (!find_driver_function(name, 12000, function)) throw_cuda(name, "the driver does not have it");
  }
};

}  // namespace dcpcheck
