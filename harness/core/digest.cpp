#include "harness/core/digest.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

[[noreturn]] void refuse(const char* call) {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  throw HarnessError(std::string("OpenSSL: ") + call + " failed: " + text.data());
}

// Replaces every element whose bits without the sign are above `infinity` by `canonical`.
template <class Word>
void canonicalise(std::span<std::byte> bytes, Word infinity, Word canonical) {
  constexpr Word magnitude = static_cast<Word>(static_cast<Word>(~Word{0}) >> 1);
  if (bytes.size() % sizeof(Word) != 0) throw HarnessError("canonicalise_nans: the bytes end within an element");
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof(Word));
    if ((word & magnitude) > infinity) std::memcpy(bytes.data() + at, &canonical, sizeof(Word));
  }
}

}  // namespace

struct Sha256::State {
  struct FreeMd {
    void operator()(EVP_MD* md) const { EVP_MD_free(md); }
  };
  struct FreeContext {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };

  // Fetching looks the algorithm up in the provider, which costs more than hashing a short text: once an object.
  std::unique_ptr<EVP_MD, FreeMd> md{EVP_MD_fetch(nullptr, "SHA256", nullptr)};
  std::unique_ptr<EVP_MD_CTX, FreeContext> context{EVP_MD_CTX_new()};

  void start() {
    if (EVP_DigestInit_ex2(context.get(), md.get(), nullptr) != 1) refuse("EVP_DigestInit_ex2");
  }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  if (!state_->md) refuse("EVP_MD_fetch(SHA256)");
  if (!state_->context) refuse("EVP_MD_CTX_new");
  state_->start();
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

Sha256& Sha256::add(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) != 1) refuse("EVP_DigestUpdate");
  return *this;
}

Sha256& Sha256::add(std::string_view text) { return add(std::as_bytes(std::span(text.data(), text.size()))); }

Sha256& Sha256::add(std::int64_t value) {
  std::array<std::byte, 8> bytes{};
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    bytes[at] = static_cast<std::byte>((static_cast<std::uint64_t>(value) >> (8 * at)) & 0xFFu);
  }
  return add(std::span<const std::byte>(bytes));
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  unsigned int length = 0;
  if (EVP_DigestFinal_ex(state_->context.get(), digest.data(), &length) != 1) refuse("EVP_DigestFinal_ex");
  if (length != digest.size()) throw HarnessError("OpenSSL: a SHA-256 of " + std::to_string(length) + " bytes");
  state_->start();
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (const unsigned char byte : digest) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view text) { return Sha256().add(text).hex(); }

void canonicalise_nans(std::span<std::byte> bytes, DType dtype) {
  switch (dtype) {
    case DType::bf16: return canonicalise<std::uint16_t>(bytes, 0x7F80, 0x7FC0);
    case DType::fp32: return canonicalise<std::uint32_t>(bytes, 0x7F800000, 0x7FC00000);
    case DType::e4m3: return canonicalise<std::uint8_t>(bytes, 0x7E, 0x7F);
    case DType::u8:
    case DType::i32:
    case DType::i64:
    case DType::fp64: return;
  }
}

std::string combine_digests(const std::map<std::string, std::string>& digests) {
  Sha256 sha;
  for (const auto& [name, digest] : digests) {
    // Lengths first, so that no two lists of pairs run together to the same bytes.
    sha.add(static_cast<std::int64_t>(name.size())).add(std::string_view{name});
    sha.add(static_cast<std::int64_t>(digest.size())).add(std::string_view{digest});
  }
  return sha.hex();
}

}  // namespace dcpcheck
