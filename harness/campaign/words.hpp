// Lists of words as they stand in a campaign's documents.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/core/json.hpp"
#include "harness/core/reader.hpp"

namespace dcpcheck {

inline json::Array array_of(const std::vector<std::string>& words) {
  json::Array array;
  for (const std::string& word : words) array.emplace_back(word);
  return array;
}

// Throws InputError as the reader does.
inline std::vector<std::string> words_of(const Reader& reader) {
  std::vector<std::string> words;
  for (const Reader& word : reader.elements()) words.push_back(word.string());
  return words;
}

// 16 hex digits.
inline std::string hex_of(std::uint64_t value) {
  std::string text(16, '0');
  for (std::size_t i = 0; i < 16; ++i) text[i] = "0123456789abcdef"[(value >> (60 - 4 * i)) & 15];
  return text;
}

}  // namespace dcpcheck
