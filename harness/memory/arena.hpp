// One piece of memory for all outputs and caches of a launch, with guards on both sides of each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/core/inputs.hpp"
#include "harness/core/plan.hpp"
#include "harness/memory/windows.hpp"

namespace dcpcheck {

// Two fillings of memory that no kernel is likely to write: bf16 NaNs (0x7F80 | k for buffer k), and their complement.
// A byte that holds A after a run on A, and B after a run on B, was not written; there is no other way to hold both.
enum class Poison : std::uint8_t { A, B };

struct ArenaBuffer {
  std::string name;         // the tensor's; an input that outputs lie on has its own name
  std::int64_t offset = 0;  // of its first byte in the arena; a multiple of 256; of a sparse buffer, of its first window
  std::int64_t bytes = 0;
  std::int64_t before = 0, after = 0;  // guard bytes on either side, at least one cache block wide
  std::uint16_t key = 1;               // k of its poison
  bool holds_input = false;            // in place: filled with the input, not with poison
  std::vector<Window> windows = {};    // of a sparse buffer: what of [-before, bytes + after) the image has; else empty

  bool sparse() const { return !windows.empty(); }
  // Where byte `byte` of the buffer, or of a guard, lies in an image. Throws HarnessError where the image does not have it.
  std::int64_t place(std::int64_t byte) const { return sparse() ? place_in_window(byte) : offset + byte; }
  // Calls f(from, to) for each part of bytes [begin, end) that an image has, in order.
  template <class F>
  void each_part(std::int64_t begin, std::int64_t end, F f) const {
    if (!sparse()) return f(begin, end);
    auto window = std::partition_point(windows.begin(), windows.end(), [&](const Window& w) { return w.end <= begin; });
    for (; window != windows.end() && window->begin < end; ++window)
      f(std::max(begin, window->begin), std::min(end, window->end));
  }

 private:
  std::int64_t place_in_window(std::int64_t byte) const;
};

// A page of a sparse buffer outside its windows that a kernel touched.
struct Touched {
  std::string buffer;
  std::int64_t byte = 0;   // the first that is no longer as it was, or the page's first
  std::int64_t bytes = 0;  // how many are not; 0: the page was read, or what was written is what it held
  std::byte value{};       // the first one's
  std::int64_t again = 0;  // over 0: it may as well lie a multiple of so many bytes further on
};

struct ArenaLayout {
  std::vector<ArenaBuffer> buffers;
  std::int64_t bytes = 0;

  bool has(std::string_view name) const;
  const ArenaBuffer& buffer(std::string_view name) const;  // throws HarnessError where there is none
};

// `first_key` over 0 is for a launch that reads what others left: each such has another one, and caches, which go from launch
// to launch, keys that nothing else has. Poison that a launch copies is then not taken for poison of its own.
ArenaLayout arena_layout(const Plan& plan, std::int64_t first_key = 0);

// Fills bytes [begin, end) of `buffer` with its poison.
void poison_again(std::span<std::byte> image, const ArenaBuffer& buffer, std::int64_t begin, std::int64_t end, Poison poison);

// Fills `image` (arena.bytes) as it is before a launch: poison, inputs that outputs lie on, and the cache records of
// the cached prefix.
void fill_arena(std::span<std::byte> image, const ArenaLayout& arena, const Plan& plan, const Inputs& inputs, std::int64_t rank,
                Poison poison);

// Host memory from mmap, released with the object. With `flush`, the last byte is the last of its page and the next page
// cannot be touched; the start is then only as aligned as `bytes` allows.
class HostMemory {
 public:
  HostMemory() = default;
  explicit HostMemory(std::int64_t bytes, bool flush = false);
  ~HostMemory();
  HostMemory(HostMemory&& other) noexcept;
  HostMemory& operator=(HostMemory&& other) noexcept;

  std::byte* data() const { return data_; }
  std::int64_t size() const { return bytes_; }
  std::span<std::byte> span() const { return {data_, static_cast<std::size_t>(bytes_)}; }

 private:
  void release();
  std::byte* mapping_ = nullptr;
  std::int64_t mapped_ = 0;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace dcpcheck
