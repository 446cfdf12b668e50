// The memory that a launch's tensors lie in for another process: the whole arena, then each input between guards of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/adapters/child.hpp"
#include "harness/exec/kernel.hpp"

namespace dcpcheck {

// Which bytes go where.
struct ExchangeLayout {
  struct Piece {
    std::string name;  // the input's; "" for the arena
    std::byte* address = nullptr;
    std::int64_t bytes = 0, offset = 0;  // of its first byte in the exchange memory
  };
  std::vector<Piece> pieces;  // the arena first, then inputs
  std::int64_t bytes = 0;
  // By tensor: of element [0, …, 0], in bytes.
  std::map<std::string, std::int64_t, std::less<>> offsets;
};

// Of a launch without sparse caches.
ExchangeLayout exchange_layout(const Launch& launch);

// Memory of this process that a process of Child has, too, as its descriptor 3. It grows and does not shrink.
class SharedMemory {
 public:
  // Throws HarnessError where there is none to be had.
  SharedMemory();
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  const Descriptor& descriptor() const { return file_; }
  std::byte* data() const { return mapping_; }
  std::int64_t bytes() const { return bytes_; }
  void reserve(std::int64_t bytes);

 private:
  void unmap();
  Descriptor file_;
  std::byte* mapping_ = nullptr;
  std::int64_t bytes_ = 0;
};

// Memory of the current CUDA device that another process can map, or nothing where this machine does not do that.
class DeviceMemory {
 public:
  static std::unique_ptr<DeviceMemory> make(std::int64_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  int device() const { return device_; }
  // Its cudaIpcMemHandle_t as hex digits: another one for each memory.
  const std::string& handle() const { return handle_; }

 private:
  DeviceMemory(std::byte* data, std::int64_t bytes, int device, std::string handle);
  std::byte* data_;
  std::int64_t bytes_;
  int device_;
  std::string handle_;
};

// The current CUDA device; 0 where there is none.
int current_device();

// How bytes are moved: on the host, or between anything on a CUDA stream.
struct Mover {
  bool cuda = false;
  void* stream = nullptr;

  void fill(std::byte* at, std::byte value, std::int64_t bytes, bool on_device) const;
  void copy(std::byte* to, const std::byte* from, std::int64_t bytes) const;
  // Until all that was asked for is done.
  void wait() const;
};

// Fills the exchange memory at `base` for a launch. What lies around the inputs is full of `guard`.
void bring(const ExchangeLayout& layout, std::byte* base, bool on_device, std::byte guard, const Mover& mover);
// Brings the arena and the inputs back. Says what was written next to an input; "" where nothing was.
std::string fetch(const ExchangeLayout& layout, const std::byte* base, std::byte guard, const Mover& mover);

}  // namespace dcpcheck
