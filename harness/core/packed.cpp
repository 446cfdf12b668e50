#include "harness/core/packed.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace dcpcheck {
namespace {

constexpr std::size_t kWindow = 32768;  // how far back a match may lie
constexpr std::size_t kShortest = 3, kLongest = 258;
constexpr int kTries = 32;             // how many earlier places a match is sought at
constexpr std::size_t kBlock = 65535;  // bytes of a block: the most that one can hold as they are
constexpr std::size_t kNone = SIZE_MAX;

// RFC 1951, 3.2.5: where the codes of lengths (from 257 on) and of distances begin, and how many more bits each has.
constexpr std::array<std::uint16_t, 29> kLengthBase = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                                       31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr std::array<std::uint8_t, 29> kLengthExtra = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                                       2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
constexpr std::array<std::uint16_t, 30> kDistanceBase = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                                         33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                                         1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
constexpr std::array<std::uint8_t, 30> kDistanceExtra = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                                         6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

// Bits, the first one lowest in a byte.
class Bits {
 public:
  void put(std::uint32_t value, int count) {
    held_ |= std::uint64_t{value} << filled_;
    for (filled_ += count; filled_ >= 8; filled_ -= 8, held_ >>= 8) bytes_.push_back(static_cast<char>(held_ & 0xFF));
  }
  // A Huffman code: its first bit is its highest.
  void put_code(std::uint32_t code, int count) {
    std::uint32_t turned = 0;
    for (int i = 0; i < count; ++i) turned |= ((code >> i) & 1) << (count - 1 - i);
    put(turned, count);
  }
  void to_byte() {
    if (filled_ > 0) put(0, 8 - filled_);
  }
  std::string& bytes() { return bytes_; }

 private:
  std::string bytes_;
  std::uint64_t held_ = 0;
  int filled_ = 0;
};

// A literal, or a match of `length` bytes `distance` before.
struct Symbol {
  std::uint16_t length = 0, distance = 0;
  std::uint8_t literal = 0;
};

template <std::size_t Count>
std::size_t entry_of(const std::array<std::uint16_t, Count>& base, std::size_t value) {
  return static_cast<std::size_t>(std::upper_bound(base.begin(), base.end(), value) - base.begin()) - 1;
}

// RFC 1951, 3.2.6: the fixed codes.
void put_literal_or_length(Bits& out, std::uint32_t symbol) {
  if (symbol < 144) {
    out.put_code(0x30 + symbol, 8);
  } else if (symbol < 256) {
    out.put_code(0x190 + symbol - 144, 9);
  } else if (symbol < 280) {
    out.put_code(symbol - 256, 7);
  } else {
    out.put_code(0xC0 + symbol - 280, 8);
  }
}

int bits_of(const Symbol& symbol) {
  if (symbol.length == 0) return symbol.literal < 144 ? 8 : 9;
  const std::size_t length = entry_of(kLengthBase, symbol.length), distance = entry_of(kDistanceBase, symbol.distance);
  return (length < 23 ? 7 : 8) + kLengthExtra[length] + 5 + kDistanceExtra[distance];
}

void put_symbol(Bits& out, const Symbol& symbol) {
  if (symbol.length == 0) return put_literal_or_length(out, symbol.literal);
  const std::size_t length = entry_of(kLengthBase, symbol.length), distance = entry_of(kDistanceBase, symbol.distance);
  put_literal_or_length(out, static_cast<std::uint32_t>(257 + length));
  out.put(symbol.length - kLengthBase[length], kLengthExtra[length]);
  out.put_code(static_cast<std::uint32_t>(distance), 5);
  out.put(symbol.distance - kDistanceBase[distance], kDistanceExtra[distance]);
}

// Where three bytes that begin at a place were seen before, the last time and each time before that.
class Places {
 public:
  explicit Places(std::string_view bytes) : bytes_(bytes), last_(std::size_t{1} << 15, kNone), before_(bytes.size(), kNone) {}

  void add(std::size_t at) {
    if (at + kShortest > bytes_.size()) return;
    std::size_t& last = last_[hash(at)];
    before_[at] = last;
    last = at;
  }

  // The longest match for the bytes from `at` on, up to `end`; a literal where there is none.
  Symbol best(std::size_t at, std::size_t end) const {
    Symbol best;
    best.literal = static_cast<std::uint8_t>(bytes_[at]);
    const std::size_t most = std::min(kLongest, end - at);
    if (most < kShortest) return best;
    std::size_t place = last_[hash(at)];
    for (int tries = 0; tries < kTries && place != kNone && at - place <= kWindow; ++tries, place = before_[place]) {
      std::size_t length = 0;
      while (length < most && bytes_[place + length] == bytes_[at + length]) ++length;
      if (length < kShortest || length <= best.length) continue;
      best.length = static_cast<std::uint16_t>(length);
      best.distance = static_cast<std::uint16_t>(at - place);
      if (length == most) break;
    }
    return best;
  }

 private:
  std::size_t hash(std::size_t at) const {
    std::uint32_t word = 0;
    for (std::size_t i = 0; i < kShortest; ++i) word = word << 8 | static_cast<std::uint8_t>(bytes_[at + i]);
    return word * 2654435761U >> 17;
  }

  std::string_view bytes_;
  std::vector<std::size_t> last_, before_;
};

void put_block(Bits& out, std::string_view raw, const std::vector<Symbol>& symbols, bool last) {
  std::size_t bits = 7;
  for (const Symbol& symbol : symbols) bits += static_cast<std::size_t>(bits_of(symbol));
  out.put(last ? 1 : 0, 1);
  if (bits > 8 * (raw.size() + 4)) {  // as they are: random numbers do not get shorter
    out.put(0, 2);
    out.to_byte();
    const auto length = static_cast<std::uint32_t>(raw.size());
    out.put(length, 16);
    out.put(length ^ 0xFFFF, 16);
    out.bytes() += raw;
    return;
  }
  out.put(1, 2);
  for (const Symbol& symbol : symbols) put_symbol(out, symbol);
  put_literal_or_length(out, 256);
}

std::uint32_t adler32(std::string_view bytes) {
  std::uint32_t a = 1, b = 0;
  for (const char c : bytes) {
    a = (a + static_cast<std::uint8_t>(c)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

}  // namespace

std::string zlib_compressed(std::string_view bytes) {
  Bits out;
  out.put(0x78, 8);
  out.put(0x01, 8);
  Places places(bytes);
  std::size_t at = 0;
  do {
    const std::size_t begin = at, end = std::min(at + kBlock, bytes.size());
    std::vector<Symbol> symbols;
    while (at < end) {
      symbols.push_back(places.best(at, end));
      for (std::size_t n = std::max<std::size_t>(symbols.back().length, 1); n > 0; --n) places.add(at++);
    }
    put_block(out, bytes.substr(begin, end - begin), symbols, end == bytes.size());
  } while (at < bytes.size());
  out.to_byte();
  const std::uint32_t sum = adler32(bytes);
  for (int shift = 24; shift >= 0; shift -= 8) out.put(sum >> shift & 0xFF, 8);
  return std::move(out.bytes());
}

std::string base64_lines(std::string_view bytes, std::size_t width) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::size_t column = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t here = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t word = 0;
    for (std::size_t i = 0; i < 3; ++i) word = word << 8 | (i < here ? static_cast<std::uint8_t>(bytes[at + i]) : 0);
    for (std::size_t i = 0; i < 4; ++i) out += i <= here ? kDigits[word >> (18 - 6 * i) & 63] : '=';
    column += 4;
    if (column >= width) {
      out += '\n';
      column = 0;
    }
  }
  if (column > 0) out += '\n';
  return out;
}

}  // namespace dcpcheck
