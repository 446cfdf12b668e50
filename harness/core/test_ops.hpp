// For tests: the ops that come with dcpcheck, read from where the source lies.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "harness/core/error.hpp"
#include "harness/core/op.hpp"

namespace dcpcheck {

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw HarnessError("cannot open " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Each reference/*.op.json. Taken from the folder, so that a new op is in every test that goes through them all.
inline Ops ops_of_source() {
  Ops ops;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(DCPCHECK_SOURCE_DIR) + "/reference")) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".op.json")) continue;
    Op op = op_from_json(json::parse(read_file(path), path), path);
    std::string name = op.name;
    ops.emplace(std::move(name), std::move(op));
  }
  return ops;
}

}  // namespace dcpcheck
