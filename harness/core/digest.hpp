// SHA-256 over named tensors (OpenSSL's EVP).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "harness/core/dtype.hpp"

namespace dcpcheck {

// A running SHA-256. Throws HarnessError where OpenSSL refuses.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  Sha256& add(std::span<const std::byte> bytes);
  Sha256& add(std::string_view text);
  Sha256& add(std::int64_t value);  // 8 bytes, little-endian
  // 64 hex digits; the object starts anew afterwards.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view text);

// Makes every NaN in `bytes`, elements of `dtype`, the one that digests use (bf16 0x7FC0, fp32 0x7FC00000, e4m3 0x7F).
void canonicalise_nans(std::span<std::byte> bytes, DType dtype);

// The digest of a set of named digests: SHA-256 over the sorted (name, digest) pairs.
std::string combine_digests(const std::map<std::string, std::string>& digests);

}  // namespace dcpcheck
