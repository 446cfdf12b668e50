// Random numbers by counter: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011), from Random123, which only philox.cpp includes. A number depends on its key and counter alone, so any thread
// can draw any of them in any order.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>

namespace dcpcheck {

// What one counter gives: 128 random bits.
using PhiloxBlock = std::array<std::uint32_t, 4>;

// The plain generator: block `counter` of `key` (words in the order of the paper, the key's low word first).
PhiloxBlock philox(std::uint64_t key, const PhiloxBlock& counter);

// The numbers of one name under one seed, cut into parts that do not overlap: one for each thing drawn by that name.
class Stream {
 public:
  Stream(std::uint64_t seed, std::string_view name, std::uint32_t part = 0);

  PhiloxBlock block(std::uint64_t index) const;
  // Blocks first, first + 1, …, as many as `out` holds.
  void blocks(std::uint64_t first, std::span<PhiloxBlock> out) const;
  // For blocks first, first + 1, …: the sum of each one's eight 16-bit halves.
  void sums(std::uint64_t first, std::span<std::uint32_t> out) const;
  // The low 64 bits of block `index`.
  std::uint64_t word(std::uint64_t index) const;

 private:
  std::uint64_t key_ = 0;
  std::uint32_t part_ = 0;
};

// Draws from 0 .. n - 1 without repetition, in time and memory of what is drawn rather than of n: a Fisher-Yates shuffle
// whose array holds only the entries that were moved.
class Draw {
 public:
  explicit Draw(std::int64_t n) : n_(n) {}
  std::int64_t left() const { return n_ - drawn_; }
  // The next one; left() must not be 0.
  std::int64_t next(std::uint64_t random);

 private:
  std::int64_t n_ = 0, drawn_ = 0;
  std::unordered_map<std::int64_t, std::int64_t> moved_;
};

}  // namespace dcpcheck
