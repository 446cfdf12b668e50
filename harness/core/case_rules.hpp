// What the rules of a case let its cache groups be.
#pragma once

#include <string_view>

#include "harness/core/op.hpp"

namespace dcpcheck {

// Whether a cache group of the op may be sparse: one launch writes records of it, and no input is its cache.
bool may_be_sparse(const Op& op, std::string_view group);

}  // namespace dcpcheck
