#include "harness/core/philox.hpp"

#include <Random123/philox.h>

namespace dcpcheck {
namespace {

// FNV-1a, 64 bits (Fowler, Noll, Vo): of the name.
std::uint64_t hash(std::string_view name) {
  std::uint64_t value = 0xCBF29CE484222325u;
  for (const char letter : name) {
    value = (value ^ static_cast<unsigned char>(letter)) * 0x100000001B3u;
  }
  return value;
}

// The finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014): one bit in turns about half of those out, so that
// seeds that follow each other give keys that do not.
std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

std::uint32_t sum_of_halves(const PhiloxBlock& block) {
  std::uint32_t sum = 0;
  for (const std::uint32_t word : block) sum += (word & 0xFFFFu) + (word >> 16);
  return sum;
}

}  // namespace

PhiloxBlock philox(std::uint64_t key, const PhiloxBlock& counter) {
  const philox4x32_ctr_t in = {{counter[0], counter[1], counter[2], counter[3]}};
  const philox4x32_key_t words = {{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)}};
  const philox4x32_ctr_t out = philox4x32_R(10, in, words);
  return {out.v[0], out.v[1], out.v[2], out.v[3]};
}

Stream::Stream(std::uint64_t seed, std::string_view name, std::uint32_t part)
    : key_(mix(mix(seed + 0x9E3779B97F4A7C15u) ^ hash(name))), part_(part) {}

PhiloxBlock Stream::block(std::uint64_t index) const {
  return philox(key_, {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), part_, 0});
}

void Stream::blocks(std::uint64_t first, std::span<PhiloxBlock> out) const {
  for (std::size_t at = 0; at < out.size(); ++at) out[at] = block(first + at);
}

void Stream::sums(std::uint64_t first, std::span<std::uint32_t> out) const {
  for (std::size_t at = 0; at < out.size(); ++at) out[at] = sum_of_halves(block(first + at));
}

std::uint64_t Stream::word(std::uint64_t index) const {
  const PhiloxBlock words = block(index);
  return words[0] | static_cast<std::uint64_t>(words[1]) << 32;
}

std::int64_t Draw::next(std::uint64_t random) {
  const auto at = [this](std::int64_t index) {
    const auto found = moved_.find(index);
    return found == moved_.end() ? index : found->second;
  };
  // The bias of the remainder is under n / 2^64: nothing, for drawing inputs.
  const std::int64_t chosen = drawn_ + static_cast<std::int64_t>(random % static_cast<std::uint64_t>(left()));
  const std::int64_t value = at(chosen);
  moved_[chosen] = at(drawn_);
  moved_.erase(drawn_++);
  return value;
}

}  // namespace dcpcheck
