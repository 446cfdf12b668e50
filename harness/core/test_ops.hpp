// For tests: the ops that come with dcpcheck, read from where the source lies.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

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

inline Ops ops_of_source() {
  Ops ops;
  for (const char* name : {"compute_slot_mapping", "fused_norm_rope"}) {
    const std::string path = std::string(DCPCHECK_SOURCE_DIR) + "/reference/" + name + ".op.json";
    ops.emplace(name, op_from_json(json::parse(read_file(path), path), path));
  }
  return ops;
}

}  // namespace dcpcheck
