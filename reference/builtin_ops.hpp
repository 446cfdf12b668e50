// The ops that come with dcpcheck: reference/<op>.op.json says what each is, reference/<op>.cpp what is admissible.
// The list is made by the build from those files.
#pragma once

#include <map>
#include <string>

#include "harness/core/op.hpp"
#include "harness/oracle/admissible.hpp"

namespace dcpcheck {

struct BuiltinOp {
  Op op;
  Reference reference;
};

std::map<std::string, BuiltinOp, std::less<>> builtin_ops();

}  // namespace dcpcheck
