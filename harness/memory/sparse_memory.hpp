// Host memory of a sparse buffer: its whole range of addresses, of which only what is touched takes memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "harness/memory/arena.hpp"

namespace dcpcheck {

class SparseMemory {
 public:
  // `buffer` must outlive it, and be sparse.
  explicit SparseMemory(const ArenaBuffer& buffer);
  ~SparseMemory();
  SparseMemory(SparseMemory&& other) noexcept;
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;
  SparseMemory& operator=(SparseMemory&&) = delete;

  // Byte 0 of the buffer.
  std::byte* data() const { return mapping_ + buffer_->before; }
  // Fills the windows from an arena image, and brings them back into one.
  void bring(std::span<const std::byte> image);
  void fetch(std::span<std::byte> image) const;
  // The pages outside the windows that were touched since the memory was made, by address.
  std::vector<Touched> touched() const;

 private:
  std::int64_t mapped() const { return buffer_->before + buffer_->bytes + buffer_->after; }

  const ArenaBuffer* buffer_;
  int file_ = -1;
  std::byte* mapping_ = nullptr;
};

}  // namespace dcpcheck
