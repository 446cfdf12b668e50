#include "harness/memory/arena.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

constexpr std::int64_t kAlignment = 256;  // as cudaMalloc gives
constexpr std::int64_t kLeastGuard = 4096;

std::int64_t to_pages(std::int64_t bytes) { return (bytes + kWindowPage - 1) / kWindowPage * kWindowPage; }

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::uint16_t poison_word(std::uint16_t key, Poison poison) {
  const auto word = static_cast<std::uint16_t>(0x7F80 | key);
  return poison == Poison::A ? word : static_cast<std::uint16_t>(~word);
}

// k of a buffer's poison, 1 to 127.
std::uint16_t key_of(std::int64_t index, bool cache, std::int64_t first_key) {
  constexpr std::int64_t kCaches = 8;
  if (first_key == 0) return static_cast<std::uint16_t>(1 + index % 127);
  if (cache) return static_cast<std::uint16_t>(1 + index % kCaches);
  return static_cast<std::uint16_t>(1 + kCaches + (first_key + index) % (127 - kCaches));
}

void fill_words(std::byte* at, std::int64_t bytes, std::uint16_t word) {
  // By doubling: memcpy of what is already there runs at the speed of memory.
  if (bytes <= 0) return;
  std::byte pattern[2];
  std::memcpy(pattern, &word, 2);
  at[0] = pattern[0];
  if (bytes > 1) at[1] = pattern[1];
  for (std::int64_t done = 2; done < bytes;) {
    const auto more = std::min<std::int64_t>({done, bytes - done, 1 << 16});
    std::memcpy(at + done, at, static_cast<std::size_t>(more));
    done += more;
  }
}

}  // namespace

namespace {

auto find_buffer(const std::vector<ArenaBuffer>& buffers, std::string_view name) {
  return std::find_if(buffers.begin(), buffers.end(), [&](const ArenaBuffer& b) { return b.name == name; });
}

}  // namespace

std::int64_t ArenaBuffer::place_in_window(std::int64_t byte) const {
  const auto window = std::partition_point(windows.begin(), windows.end(), [&](const Window& w) { return w.end <= byte; });
  if (window == windows.end() || byte < window->begin)
    throw HarnessError("byte " + std::to_string(byte) + " of " + name + " lies in none of its windows");
  return window->offset + byte - window->begin;
}

bool ArenaLayout::has(std::string_view name) const { return find_buffer(buffers, name) != buffers.end(); }

const ArenaBuffer& ArenaLayout::buffer(std::string_view name) const {
  const auto found = find_buffer(buffers, name);
  if (found == buffers.end()) throw HarnessError("the arena has no buffer " + std::string(name));
  return *found;
}

ArenaLayout arena_layout(const Plan& plan, std::int64_t first_key) {
  ArenaLayout arena;
  // A wild write is one record or one block off, as a rule: a guard is as wide as the widest cache block of the launch.
  std::int64_t guard = kLeastGuard;
  for (const TensorPlan& tensor : plan.tensors) {
    if (tensor.role == Role::cache) guard = std::max(guard, tensor.cache.block_stride);
  }
  guard = aligned(guard);
  std::int64_t at = 0;
  const auto add_sparse = [&](const TensorPlan& tensor) {
    ArenaBuffer buffer;
    buffer.name = tensor.name;
    buffer.offset = at;
    buffer.bytes = tensor.bytes();
    const std::int64_t ends = to_pages(guard);
    buffer.before = reach_below(tensor.cache) + ends;
    buffer.after = to_pages(buffer.bytes) - buffer.bytes + ends;
    buffer.key = key_of(static_cast<std::int64_t>(arena.buffers.size()), true, first_key);
    buffer.windows = windows_of(plan, tensor, ends);
    for (Window& window : buffer.windows) {
      window.offset = at;
      at += window.end - window.begin;
    }
    arena.buffers.push_back(std::move(buffer));
  };
  const auto add = [&](const std::string& name, std::int64_t bytes, bool holds_input, bool cache) {
    ArenaBuffer buffer;
    buffer.name = name;
    buffer.offset = at + guard;
    buffer.bytes = bytes;
    buffer.before = guard;
    buffer.after = aligned(bytes) - bytes + guard;
    buffer.key = key_of(static_cast<std::int64_t>(arena.buffers.size()), cache, first_key);
    buffer.holds_input = holds_input;
    at = buffer.offset + bytes + buffer.after;
    arena.buffers.push_back(std::move(buffer));
  };
  for (const TensorPlan& tensor : plan.tensors) {
    if (tensor.role == Role::in) continue;
    if (tensor.cache.sparse) {
      add_sparse(tensor);
      continue;
    }
    add(tensor.in_place_of.empty() ? tensor.name : tensor.in_place_of, tensor.bytes(), !tensor.in_place_of.empty(),
        tensor.role == Role::cache);
  }
  arena.bytes = at;
  return arena;
}

void poison_again(std::span<std::byte> image, const ArenaBuffer& buffer, std::int64_t begin, std::int64_t end, Poison poison) {
  const std::uint16_t word = poison_word(buffer.key, poison);
  for (std::int64_t i = begin; i < end; ++i) {
    // Buffers and their guards begin at even places.
    image[static_cast<std::size_t>(buffer.place(i))] = static_cast<std::byte>(i % 2 == 0 ? word & 0xFF : word >> 8);
  }
}

void fill_arena(std::span<std::byte> image, const ArenaLayout& arena, const Plan& plan, const Inputs& inputs, std::int64_t rank,
                Poison poison) {
  for (const ArenaBuffer& buffer : arena.buffers) {
    buffer.each_part(-buffer.before, buffer.bytes + buffer.after, [&](std::int64_t begin, std::int64_t end) {
      fill_words(image.data() + buffer.place(begin), end - begin, poison_word(buffer.key, poison));
    });
    if (buffer.holds_input) {
      const Bytes& input = inputs.get(buffer.name, rank);
      if (!input.empty()) std::memcpy(image.data() + buffer.offset, input.data(), input.size());
    }
  }
  for (const auto& [name, ranks] : inputs.prefix) {
    const TensorPlan* tensor = plan.find(name);
    if (!tensor || tensor->role != Role::cache) continue;
    const ArenaBuffer& buffer = arena.buffer(name);
    for (const auto& [slot, record] : ranks.at(static_cast<std::size_t>(rank))) {
      const std::byte* from = record.data();
      for (const FieldPlan& field : tensor->cache.fields) {
        if (field.count == 0) continue;
        std::memcpy(image.data() + buffer.place(tensor->cache.address(slot, field)), from,
                    static_cast<std::size_t>(field.bytes()));
        from += field.bytes();
      }
    }
  }
}

HostMemory::HostMemory(std::int64_t bytes, bool flush) : bytes_(bytes) {
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  const std::int64_t body = (std::max<std::int64_t>(bytes, 1) + page - 1) / page * page;
  mapped_ = body + (flush ? page : 0);
  void* mapping =
      ::mmap(nullptr, static_cast<std::size_t>(mapped_), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw_errno("mmap of " + std::to_string(mapped_) + " bytes");
  mapping_ = static_cast<std::byte*>(mapping);
  data_ = mapping_;
  if (flush) {
    if (::mprotect(mapping_ + body, static_cast<std::size_t>(page), PROT_NONE) != 0) {
      release();
      throw_errno("mprotect of a guard page");
    }
    data_ = mapping_ + body - bytes;
  }
}

HostMemory::~HostMemory() { release(); }

HostMemory::HostMemory(HostMemory&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_(std::exchange(other.mapped_, 0)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

HostMemory& HostMemory::operator=(HostMemory&& other) noexcept {
  if (this != &other) {
    release();
    mapping_ = std::exchange(other.mapping_, nullptr);
    mapped_ = std::exchange(other.mapped_, 0);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void HostMemory::release() {
  // munmap of a mapping that mmap gave cannot fail; a destructor could not say so anyhow.
  if (mapping_) ::munmap(mapping_, static_cast<std::size_t>(mapped_));
  mapping_ = nullptr;
}

}  // namespace dcpcheck
