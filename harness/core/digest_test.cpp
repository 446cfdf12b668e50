#include "harness/core/digest.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

template <class T>
std::vector<T> canonicalised(std::vector<T> values, DType dtype) {
  canonicalise_nans(std::as_writable_bytes(std::span(values)), dtype);
  return values;
}

// FIPS 180-2, appendix B, and the digest of nothing.
TEST(Digest, FipsVectors) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  Sha256 sha;
  for (int part = 0; part < 1000; ++part) sha.add(std::string(1000, 'a'));
  EXPECT_EQ(sha.hex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Digest, StartsAnewAfterHex) {
  Sha256 sha;
  sha.add("something before");
  EXPECT_NE(sha.hex(), sha256_hex(""));
  EXPECT_EQ(sha.hex(), sha256_hex(""));
  EXPECT_EQ(sha.add("abc").hex(), sha256_hex("abc"));
  Sha256 moved = std::move(sha);
  EXPECT_EQ(moved.add("abc").hex(), sha256_hex("abc"));
}

TEST(Digest, IntegersAreLittleEndian) {
  const std::string bytes("\x08\x07\x06\x05\x04\x03\x02\x81", 8);
  EXPECT_EQ(Sha256().add(static_cast<std::int64_t>(0x8102030405060708u)).hex(), sha256_hex(bytes));
  EXPECT_NE(Sha256().add(std::int64_t{1}).hex(), Sha256().add(std::int64_t{-1}).hex());
}

TEST(Digest, NansAreMadeOne) {
  EXPECT_EQ((canonicalised<std::uint16_t>({0x7F80, 0x7F81, 0xFFC0, 0xFF80, 0x8000, 0x7F7F}, DType::bf16)),
            (std::vector<std::uint16_t>{0x7F80, 0x7FC0, 0x7FC0, 0xFF80, 0x8000, 0x7F7F}));
  EXPECT_EQ((canonicalised<std::uint32_t>({0x7F800000, 0x7F800001, 0xFFC00000, 0xFF800000, 0x7FFFFFFF}, DType::fp32)),
            (std::vector<std::uint32_t>{0x7F800000, 0x7FC00000, 0x7FC00000, 0xFF800000, 0x7FC00000}));
  EXPECT_EQ((canonicalised<std::uint8_t>({0x7F, 0xFF, 0x7E, 0xFE, 0x00}, DType::e4m3)),
            (std::vector<std::uint8_t>{0x7F, 0x7F, 0x7E, 0xFE, 0x00}));
  EXPECT_EQ((canonicalised<std::uint8_t>({0x7F, 0xFF}, DType::u8)), (std::vector<std::uint8_t>{0x7F, 0xFF}));
  EXPECT_EQ((canonicalised<std::int32_t>({-1}, DType::i32)), (std::vector<std::int32_t>{-1}));
  std::vector<std::byte> odd(3);
  EXPECT_THROW(canonicalise_nans(odd, DType::bf16), HarnessError);
}

TEST(Digest, CombinedOverSortedPairs) {
  std::map<std::string, std::string> forward, backward;
  for (const char* name : {"a", "b", "c"}) forward[name] = sha256_hex(name);
  for (const char* name : {"c", "b", "a"}) backward[name] = sha256_hex(name);
  EXPECT_EQ(combine_digests(forward), combine_digests(backward));
  EXPECT_EQ(combine_digests(forward), "e26eef4d4361be124fc744647451db854f68f5e21c1657d27347fa4822fb9d4a");
  std::map<std::string, std::string> swapped = forward;
  std::swap(swapped["a"], swapped["b"]);
  EXPECT_NE(combine_digests(forward), combine_digests(swapped));
  EXPECT_NE(combine_digests({{"ab", "c"}}), combine_digests({{"a", "bc"}}));
  EXPECT_EQ(combine_digests({}), sha256_hex(""));
}

}  // namespace
}  // namespace dcpcheck
