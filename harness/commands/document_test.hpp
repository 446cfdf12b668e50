// Where the corpora and the tests' libraries are, and what the program writes as JSON.
#pragma once

#include <cstddef>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "harness/core/json.hpp"

namespace dcpcheck {

inline const std::filesystem::path kCorpora = std::filesystem::path(DCPCHECK_SOURCE_DIR) / "corpora";

// A kernel that the build made for tests, as --kernel takes it.
inline std::string library(const std::string& name) { return "lib:" DCPCHECK_LIBRARIES "/" + name + ".so"; }

inline json::Value parsed(const std::string& text) { return json::parse(text, "a document", {std::size_t{1} << 26, 32}); }

// The member of that name, which must be there.
inline const json::Value& at(const json::Value& value, std::string_view key) {
  const json::Value* member = value.find(key);
  if (member == nullptr) throw std::runtime_error("no " + std::string(key));
  return *member;
}

inline std::string text_at(const json::Value& value, std::string_view key) { return *at(value, key).get<std::string>(); }

}  // namespace dcpcheck
