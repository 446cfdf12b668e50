// The tensors of a launch, as the kernel is given them.
#pragma once

#include <map>
#include <string>

#include "harness/exec/kernel.hpp"
#include "harness/memory/arena.hpp"

namespace dcpcheck {

// A view of every tensor of the plan: outputs, caches and inputs that outputs lie on in the arena at `arena_base`, sparse
// caches and all other inputs where `placed` says their storage starts.
std::map<std::string, View, std::less<>> make_views(const Plan& plan, const ArenaLayout& arena, std::byte* arena_base,
                                                    const std::map<std::string, std::byte*, std::less<>>& placed);

}  // namespace dcpcheck
