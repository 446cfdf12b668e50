// Portable digests: what every right kernel's output comes to, on any device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/exec/examine.hpp"

namespace dcpcheck {

// What stands in a portable digest for the bytes of a buffer's span: of each admissible element its canonical code
// (oracle/canonical.hpp), so that the digest is digest_buffer's own where a kernel's elements are those codes. An element that
// is not admissible stands as it is, and a mark says where such ones are: no right kernel comes to such a digest. Rows that
// `expected` does not know have no bytes in it.
//
// `image` is the arena after run A: codes are judged against the scales that the kernel stored there. All must outlive the
// answer.
Restate restate_admissible(const Plan& plan, const TensorPlan& tensor, const ArenaBuffer& buffer, const Expected& expected,
                           const Inputs& inputs, std::int64_t rank, const std::byte* image);

// The canonical codes of a span's elements, as they would lie in the buffer; empty where `expected` does not know its row.
Bytes canonical_bytes(const Plan& plan, const TensorPlan& tensor, const Span& span, const Expected& expected,
                      const Inputs& inputs, std::int64_t rank);

}  // namespace dcpcheck
