// Memory for a launch in another process, and how it is filled: the host's alone, and where there is CUDA, the device's.
#include <cstring>
#include <utility>

#include "harness/adapters/exchange.hpp"
#include "harness/core/error.hpp"

#ifdef DCPCHECK_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

namespace dcpcheck {

DeviceMemory::DeviceMemory(std::byte* data, std::int64_t bytes, int device, std::string handle)
    : data_(data), bytes_(bytes), device_(device), handle_(std::move(handle)) {}

#ifdef DCPCHECK_HAVE_CUDA

namespace {

void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess) throw HarnessError(std::string(call) + ": " + cudaGetErrorString(status));
}

std::string in_hex(const cudaIpcMemHandle_t& handle) {
  std::string hex;
  for (const char c : handle.reserved) {
    const auto byte = static_cast<unsigned char>(c);
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

}  // namespace

std::unique_ptr<DeviceMemory> DeviceMemory::make(std::int64_t bytes) {
  const int device = current_device();
  // Of cudaMalloc: memory of a stream's pool has no handle.
  void* data = nullptr;
  check(cudaMalloc(&data, static_cast<std::size_t>(bytes)), "cudaMalloc");
  cudaIpcMemHandle_t handle{};
  if (cudaIpcGetMemHandle(&handle, data) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // else the next check that looks would find it
    check(cudaFree(data), "cudaFree");
    return nullptr;
  }
  return std::unique_ptr<DeviceMemory>(new DeviceMemory(static_cast<std::byte*>(data), bytes, device, in_hex(handle)));
}

// Not checked: where this fails the device is lost, and the next checked call says so.
DeviceMemory::~DeviceMemory() { static_cast<void>(cudaFree(data_)); }

int current_device() {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

void Mover::fill(std::byte* at, std::byte value, std::int64_t bytes, bool on_device) const {
  const auto count = static_cast<std::size_t>(bytes);
  if (!on_device) {
    std::memset(at, static_cast<int>(value), count);
    return;
  }
  check(cudaMemsetAsync(at, static_cast<int>(value), count, static_cast<cudaStream_t>(stream)), "cudaMemsetAsync");
}

void Mover::copy(std::byte* to, const std::byte* from, std::int64_t bytes) const {
  const auto count = static_cast<std::size_t>(bytes);
  if (count == 0) return;
  if (!cuda) {
    std::memcpy(to, from, count);
    return;
  }
  check(cudaMemcpyAsync(to, from, count, cudaMemcpyDefault, static_cast<cudaStream_t>(stream)), "cudaMemcpyAsync");
}

void Mover::wait() const {
  if (cuda) check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "cudaStreamSynchronize");
}

#else

// No backend of this build could give a launch that asks for these.
std::unique_ptr<DeviceMemory> DeviceMemory::make(std::int64_t) { return nullptr; }

DeviceMemory::~DeviceMemory() = default;

int current_device() { return 0; }

void Mover::fill(std::byte* at, std::byte value, std::int64_t bytes, bool) const {
  std::memset(at, static_cast<int>(value), static_cast<std::size_t>(bytes));
}

void Mover::copy(std::byte* to, const std::byte* from, std::int64_t bytes) const {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void Mover::wait() const {}

#endif

}  // namespace dcpcheck
