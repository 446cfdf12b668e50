// Packed bytes come back: by a reader of RFC 1950 and 1951 of the test's own, for the blocks that are written.
#include "harness/core/packed.hpp"

#include <gtest/gtest.h>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

namespace dcpcheck {
namespace {

class Inflater {
 public:
  explicit Inflater(std::string_view bytes) : bytes_(bytes) {}

  std::string run() {
    if (bits(8) != 0x78 || (0x7800 + bits(8)) % 31 != 0) throw std::runtime_error("no zlib header");
    for (bool last = false; !last;) {
      last = bits(1) == 1;
      const std::uint32_t kind = bits(2);
      if (kind == 0) {
        stored();
      } else if (kind == 1) {
        fixed();
      } else {
        throw std::runtime_error("a block of another kind");
      }
    }
    at_ = (at_ + 7) / 8 * 8;
    std::uint32_t a = 1, b = 0, sum = 0;
    for (const char c : out_) {
      a = (a + static_cast<unsigned char>(c)) % 65521;
      b = (b + a) % 65521;
    }
    for (int i = 0; i < 4; ++i) sum = sum << 8 | bits(8);
    if (sum != (b << 16 | a) || at_ != 8 * bytes_.size()) throw std::runtime_error("another checksum");
    return out_;
  }

 private:
  std::uint32_t bits(int count) {
    std::uint32_t value = 0;
    for (int i = 0; i < count; ++i, ++at_) value |= (static_cast<std::uint32_t>(bytes_.at(at_ / 8)) >> (at_ % 8) & 1) << i;
    return value;
  }
  std::uint32_t turned(int count) {
    std::uint32_t value = 0;
    for (int i = 0; i < count; ++i) value = value << 1 | bits(1);
    return value;
  }
  void stored() {
    at_ = (at_ + 7) / 8 * 8;
    const std::uint32_t length = bits(16);
    if (bits(16) != (length ^ 0xFFFF)) throw std::runtime_error("a length and its complement");
    for (std::uint32_t i = 0; i < length; ++i) out_ += static_cast<char>(bits(8));
  }
  std::uint32_t symbol() {
    std::uint32_t code = turned(7);
    if (code < 0x18) return 256 + code;
    code = code << 1 | bits(1);
    if (code < 0xC0) return code - 0x30;
    if (code < 0xC8) return 280 + code - 0xC0;
    return 144 + (code << 1 | bits(1)) - 0x190;
  }
  void fixed() {
    for (std::uint32_t code = symbol(); code != 256; code = symbol()) {
      if (code < 256) {
        out_ += static_cast<char>(code);
        continue;
      }
      // The lengths from 3 on in runs of four codes with one more bit each, the last code for 258 alone.
      const std::uint32_t step = code - 257;
      std::uint32_t length = step + 3;
      if (step == 28) {
        length = 258;
      } else if (step >= 8) {
        const std::uint32_t extra = step / 4 - 1;
        length = ((4 + step % 4) << extra) + 3 + bits(static_cast<int>(extra));
      }
      const std::uint32_t far = turned(5);
      std::uint32_t distance = far + 1;
      if (far >= 4) {
        const std::uint32_t extra = far / 2 - 1;
        distance = ((2 + far % 2) << extra) + 1 + bits(static_cast<int>(extra));
      }
      if (distance > out_.size() || distance > 32768) throw std::runtime_error("a match before the beginning");
      for (std::uint32_t i = 0; i < length; ++i) out_ += out_[out_.size() - distance];
    }
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  std::string out_;
};

std::string noise(std::size_t count) {
  std::mt19937 draw(54907);
  std::string bytes(count, '\0');
  for (char& c : bytes) c = static_cast<char>(draw() & 0xFF);
  return bytes;
}

TEST(Packed, WhatIsCompressedComesBack) {
  std::string steps;
  for (int length = 1; length < 300; ++length) steps += noise(40) + std::string(static_cast<std::size_t>(length), 'x');
  const std::string far = noise(32768);
  for (const std::string& bytes :
       {std::string(), std::string("a"), std::string(300'000, '\0'), noise(65535), noise(65536), noise(200'000), steps,
        far + far, far + "y" + far, noise(70'000) + std::string(70'000, 'z') + noise(70'000)}) {
    const std::string packed = zlib_compressed(bytes);
    EXPECT_EQ(Inflater(packed).run(), bytes) << bytes.size();
    EXPECT_LE(packed.size(), bytes.size() + bytes.size() / 1000 + 16);
  }
  EXPECT_LT(zlib_compressed(std::string(300'000, '\0')).size(), 3000U);
  EXPECT_LT(zlib_compressed(far + far).size(), 36'000U);
}

TEST(Packed, AnotherByteIsAnotherSum) {
  std::string packed = zlib_compressed("some text");
  packed[4] = static_cast<char>(packed[4] ^ 1);
  EXPECT_THROW(Inflater(packed).run(), std::exception);
}

TEST(Packed, Base64IsInLines) {
  EXPECT_EQ(base64_lines("", 8), "");
  EXPECT_EQ(base64_lines("f", 8), "Zg==\n");
  EXPECT_EQ(base64_lines("fo", 8), "Zm8=\n");
  EXPECT_EQ(base64_lines("foo", 8), "Zm9v\n");
  EXPECT_EQ(base64_lines("foobar", 8), "Zm9vYmFy\n");
  EXPECT_EQ(base64_lines("foobar\xFF", 8), "Zm9vYmFy\n/w==\n");
}

}  // namespace
}  // namespace dcpcheck
