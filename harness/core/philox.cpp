#include "harness/core/philox.hpp"

#include <Random123/philox.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

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

#ifdef __SSE2__
// The same generator, eight blocks at once: making inputs is mostly this, and compilers do not find the 32 x 32 -> 64 bit
// multiply for themselves. Each 64-bit lane holds one block's word in its lower half; the upper half is never looked at.
class Lanes {
 public:
  static constexpr std::size_t blocks = 8;
  static constexpr std::size_t pairs = blocks / 2;

  Lanes(std::uint64_t key, std::uint64_t first, std::uint32_t part) {
    for (std::size_t i = 0; i < pairs; ++i) {
      const __m128i index =
          _mm_set_epi64x(static_cast<std::int64_t>(first + 2 * i + 1), static_cast<std::int64_t>(first + 2 * i));
      a[i] = index;
      b[i] = _mm_srli_epi64(index, 32);
      c[i] = _mm_set1_epi64x(part);
      d[i] = _mm_setzero_si128();
    }
    // Multipliers and key increments of the paper.
    const __m128i times_a = _mm_set1_epi64x(0xD2511F53);
    const __m128i times_c = _mm_set1_epi64x(0xCD9E8D57);
    auto key_low = static_cast<std::uint32_t>(key);
    auto key_high = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const __m128i low = _mm_set1_epi64x(key_low);
      const __m128i high = _mm_set1_epi64x(key_high);
      for (std::size_t i = 0; i < pairs; ++i) {
        const __m128i from_a = _mm_mul_epu32(a[i], times_a);
        const __m128i from_c = _mm_mul_epu32(c[i], times_c);
        a[i] = _mm_xor_si128(_mm_xor_si128(_mm_srli_epi64(from_c, 32), b[i]), low);
        c[i] = _mm_xor_si128(_mm_xor_si128(_mm_srli_epi64(from_a, 32), d[i]), high);
        b[i] = from_c;
        d[i] = from_a;
      }
      key_low += 0x9E3779B9u;
      key_high += 0xBB67AE85u;
    }
  }

  void store(PhiloxBlock* out) const {
    for (std::size_t i = 0; i < pairs; ++i) {
      const __m128i first = _mm_unpacklo_epi64(_mm_unpacklo_epi32(a[i], b[i]), _mm_unpacklo_epi32(c[i], d[i]));
      const __m128i second = _mm_unpacklo_epi64(_mm_unpackhi_epi32(a[i], b[i]), _mm_unpackhi_epi32(c[i], d[i]));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * i), first);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * i + 1), second);
    }
  }

  void store_sums(std::uint32_t* out) const {
    const __m128i half = _mm_set1_epi64x(0xFFFF);
    for (std::size_t i = 0; i < pairs; ++i) {
      __m128i sum = _mm_setzero_si128();
      for (const __m128i word : {a[i], b[i], c[i], d[i]}) {
        sum = _mm_add_epi64(sum, _mm_add_epi64(_mm_and_si128(word, half), _mm_and_si128(_mm_srli_epi64(word, 16), half)));
      }
      _mm_storel_epi64(reinterpret_cast<__m128i*>(out + 2 * i), _mm_shuffle_epi32(sum, _MM_SHUFFLE(3, 1, 2, 0)));
    }
  }

 private:
  __m128i a[pairs], b[pairs], c[pairs], d[pairs];
};
#endif

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
  std::size_t at = 0;
#ifdef __SSE2__
  for (; at + Lanes::blocks <= out.size(); at += Lanes::blocks) Lanes(key_, first + at, part_).store(out.data() + at);
#endif
  for (; at < out.size(); ++at) out[at] = block(first + at);
}

void Stream::sums(std::uint64_t first, std::span<std::uint32_t> out) const {
  std::size_t at = 0;
#ifdef __SSE2__
  for (; at + Lanes::blocks <= out.size(); at += Lanes::blocks) Lanes(key_, first + at, part_).store_sums(out.data() + at);
#endif
  for (; at < out.size(); ++at) out[at] = sum_of_halves(block(first + at));
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
