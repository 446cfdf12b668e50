// What a kernel's process says of itself before its first launch.
#pragma once

#include <string>

#include "harness/core/op.hpp"
#include "harness/exec/declaration.hpp"

namespace dcpcheck {

// The version of the protocol that this dcpcheck speaks.
inline constexpr int kProtocolVersion = 1;

struct ReadyLine {
  std::string op;
  bool host = false, cuda = false;
  bool ipc = true;  // whether it can map device memory by its handle
  Declaration declared;
};

// Throws InputError, its sentence beginning with `source`, where the line is none or names what there is not.
ReadyLine read_ready_line(const std::string& line, const Ops& ops, const std::string& source);

}  // namespace dcpcheck
