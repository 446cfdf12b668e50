// Makes the fields of a case agree with each other again after one of them was changed.
#pragma once

#include "harness/core/case.hpp"

namespace dcpcheck {

// The rules that need no choice: W divides tp, Bk and I divide B, "same" follows the mla cache, slots drawn or listed have
// no cached tokens, a list of slots is as long as the launch, a chunk is whole turns of the ranks, a table is no narrower
// than the contract lets it be, max_batched_tokens is no less than the launch, and what is said of absent things (padding,
// tensors, groups), and a recipe that is the op's own, goes. Fields give way downwards, so that what shrinks stays shrunk.
//
// A case that broke none of them keeps all it says of what is there. Rules of the op's own (Op::require) may still be broken.
void settle(const Op& op, Case& value);

}  // namespace dcpcheck
