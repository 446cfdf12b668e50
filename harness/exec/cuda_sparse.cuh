// Device memory of a sparse buffer: its whole range of addresses, of which the windows have memory of their own.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/exec/cuda_driver.hpp"
#include "harness/memory/arena.hpp"

namespace dcpcheck {

namespace sparse_device {

struct Changed {
  unsigned long long first = ~0ULL, count = 0;
};

constexpr std::uint8_t kFill = 0xA5;

// Where `bytes` bytes are not kFill.
inline __global__ void find_changed(const std::uint8_t* at, std::int64_t bytes, Changed* found) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < bytes; i += step) {
    if (at[i] == kFill) continue;
    atomicMin(&found->first, static_cast<unsigned long long>(i));
    atomicAdd(&found->count, 1ULL);
  }
}

}  // namespace sparse_device

// What lies between the windows is mapped to a few pieces of memory over and over, so that a kernel that goes astray goes on:
// where it wrote is then known but for a multiple of such a piece. A range too large for that has nothing there, and what
// touches it ends the context.
class SparseDeviceMemory {
 public:
  // `driver` and `buffer` must outlive it.
  SparseDeviceMemory(const Driver& driver, int device, const ArenaBuffer& buffer) : driver_(driver), buffer_(buffer) {
    properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties_.location.id = device;
    std::size_t unit = 0;
    driver.check(driver.granularity(&unit, &properties_, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "cuMemGetAllocationGranularity");
    unit_ = static_cast<std::int64_t>(unit);
    lower_ = unit_below(-buffer.before);
    size_ = unit_below(buffer.bytes + buffer.after + unit_ - 1) - lower_;
    try {
      driver.check(driver.reserve(&base_, static_cast<std::size_t>(size_), 0, 0, 0), "cuMemAddressReserve");
      map_all();
      DCPCHECK_CUDA_CALL(cudaMalloc(&found_, pieces_.size() * sizeof(sparse_device::Changed)));
      seen_.resize(pieces_.size());
    } catch (...) {
      release();
      throw;
    }
  }
  ~SparseDeviceMemory() { release(); }
  SparseDeviceMemory(const SparseDeviceMemory&) = delete;
  SparseDeviceMemory& operator=(const SparseDeviceMemory&) = delete;

  const std::string& name() const { return buffer_.name; }
  // Byte 0 of the buffer.
  std::byte* data() const { return reinterpret_cast<std::byte*>(base_ - static_cast<CUdeviceptr>(lower_)); }

  // Queues the filling of the windows from an arena image, and of all else with one byte.
  void bring(std::span<const std::byte> image, cudaStream_t stream) {
    for (const Piece& piece : pieces_) {
      DCPCHECK_CUDA_CALL(cudaMemsetAsync(data() + piece.begin, sparse_device::kFill, piece.bytes(), stream));
    }
    for (const Window& window : buffer_.windows) {
      DCPCHECK_CUDA_CALL(cudaMemcpyAsync(data() + window.begin, image.data() + window.offset,
                                         static_cast<std::size_t>(window.end - window.begin), cudaMemcpyHostToDevice, stream));
    }
  }

  // Queues bringing the windows back into an image, and looking at all else.
  void fetch(std::span<std::byte> image, cudaStream_t stream) {
    for (const Window& window : buffer_.windows) {
      DCPCHECK_CUDA_CALL(cudaMemcpyAsync(image.data() + window.offset, data() + window.begin,
                                         static_cast<std::size_t>(window.end - window.begin), cudaMemcpyDeviceToHost, stream));
    }
    std::fill(seen_.begin(), seen_.end(), sparse_device::Changed{});
    const std::size_t bytes = seen_.size() * sizeof(sparse_device::Changed);
    DCPCHECK_CUDA_CALL(cudaMemcpyAsync(found_, seen_.data(), bytes, cudaMemcpyHostToDevice, stream));
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const auto blocks = static_cast<unsigned>(std::clamp<std::size_t>(pieces_[i].bytes() / 4096, 1, 4096));
      sparse_device::find_changed<<<blocks, 256, 0, stream>>>(reinterpret_cast<const std::uint8_t*>(data() + pieces_[i].begin),
                                                              static_cast<std::int64_t>(pieces_[i].bytes()), found_ + i);
    }
    DCPCHECK_CUDA_CALL(cudaGetLastError());
    DCPCHECK_CUDA_CALL(cudaMemcpyAsync(seen_.data(), found_, bytes, cudaMemcpyDeviceToHost, stream));
  }

  // After what fetch() queued: what is no longer as bring() left it outside the windows.
  std::vector<Touched> touched() const {
    std::vector<Touched> out;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (seen_[i].count == 0) continue;
      Touched touched{buffer_.name,
                      pieces_[i].begin + static_cast<std::int64_t>(seen_[i].first),
                      static_cast<std::int64_t>(seen_[i].count),
                      {},
                      pieces_[i].again};
      DCPCHECK_CUDA_CALL(cudaMemcpy(&touched.value, data() + touched.byte, 1, cudaMemcpyDeviceToHost));
      out.push_back(std::move(touched));
    }
    return out;
  }

 private:
  // A stretch outside the windows that has memory; `again`: which it has in common with others so far apart.
  struct Piece {
    std::int64_t begin = 0, end = 0;
    std::int64_t again = 0;
    std::size_t bytes() const { return static_cast<std::size_t>(end - begin); }
  };
  // Memory that is mapped over and over.
  struct Shared {
    std::int64_t bytes = 0;
    CUmemGenericAllocationHandle handle{};
    bool made = false;
  };
  static constexpr std::int64_t kMostMapped = std::int64_t{1} << 38;

  std::int64_t unit_below(std::int64_t byte) const { return byte - (byte % unit_ + unit_) % unit_; }

  CUmemGenericAllocationHandle create(std::int64_t bytes) const {
    CUmemGenericAllocationHandle handle{};
    driver_.check(driver_.create(&handle, static_cast<std::size_t>(bytes), &properties_, 0), "cuMemCreate");
    return handle;
  }

  void map(std::int64_t begin, std::int64_t bytes, CUmemGenericAllocationHandle handle) {
    const CUdeviceptr at = base_ + static_cast<CUdeviceptr>(begin - lower_);
    driver_.check(driver_.map(at, static_cast<std::size_t>(bytes), 0, handle, 0), "cuMemMap");
    mapped_.emplace_back(at, static_cast<std::size_t>(bytes));
  }

  void allow(std::int64_t begin, std::int64_t bytes) const {
    CUmemAccessDesc access{};
    access.location = properties_.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    driver_.check(
        driver_.set_access(base_ + static_cast<CUdeviceptr>(begin - lower_), static_cast<std::size_t>(bytes), &access, 1),
        "cuMemSetAccess");
  }

  void map_all() {
    const bool whole = size_ <= kMostMapped;
    std::array<Shared, 3> shared = {{{128 * unit_}, {16 * unit_}, {unit_}}};
    try {
      std::int64_t at = lower_;
      const auto& windows = buffer_.windows;
      for (std::size_t i = 0; i < windows.size();) {
        // Windows of neighbouring units lie in one piece of memory.
        const std::int64_t begin = unit_below(windows[i].begin);
        std::int64_t end = begin, last = begin;
        for (; i < windows.size() && unit_below(windows[i].begin) <= end; ++i) {
          end = unit_below(windows[i].end + unit_ - 1);
          if (last < windows[i].begin) pieces_.push_back({last, windows[i].begin, 0});
          last = windows[i].end;
        }
        if (last < end) pieces_.push_back({last, end, 0});
        if (whole) map_shared(shared, at, begin);
        const CUmemGenericAllocationHandle handle = create(end - begin);
        own_.push_back(handle);
        map(begin, end - begin, handle);
        if (!whole) allow(begin, end - begin);
        at = end;
      }
      if (whole) {
        map_shared(shared, at, lower_ + size_);
        allow(lower_, size_);
      }
    } catch (...) {
      release_handles(shared);
      throw;
    }
    release_handles(shared);  // the mappings keep the memory
  }

  void map_shared(std::array<Shared, 3>& shared, std::int64_t begin, std::int64_t end) {
    for (Shared& one : shared) {
      for (; end - begin >= one.bytes; begin += one.bytes) {
        if (!one.made) {
          one.handle = create(one.bytes);
          one.made = true;
          pieces_.push_back({begin, begin + one.bytes, one.bytes});
        }
        map(begin, one.bytes, one.handle);
      }
    }
  }

  void release_handles(const std::array<Shared, 3>& shared) {
    for (const Shared& one : shared) {
      if (one.made) static_cast<void>(driver_.release(one.handle));
    }
    for (const CUmemGenericAllocationHandle handle : own_) static_cast<void>(driver_.release(handle));
    own_.clear();
  }

  void release() {
    // Not checked: where these fail the device is lost, and the next checked call says so.
    for (const auto& [at, bytes] : mapped_) static_cast<void>(driver_.unmap(at, bytes));
    mapped_.clear();
    if (base_ != 0) static_cast<void>(driver_.free_address(base_, static_cast<std::size_t>(size_)));
    base_ = 0;
    if (found_ != nullptr) static_cast<void>(cudaFree(found_));
    found_ = nullptr;
  }

  const Driver& driver_;
  const ArenaBuffer& buffer_;
  CUmemAllocationProp properties_{};
  std::int64_t unit_ = 0, lower_ = 0, size_ = 0;  // the range starts at byte lower_ of the buffer
  CUdeviceptr base_ = 0;
  std::vector<std::pair<CUdeviceptr, std::size_t>> mapped_;
  std::vector<CUmemGenericAllocationHandle> own_;
  std::vector<Piece> pieces_;
  std::vector<sparse_device::Changed> seen_;
  sparse_device::Changed* found_ = nullptr;
};

}  // namespace dcpcheck
