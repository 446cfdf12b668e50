// Looks at one buffer of one rank after both runs: what was written, what was not, what should not have been, and
// whether the values are admissible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/core/verdict.hpp"
#include "harness/memory/arena.hpp"
#include "harness/memory/write_set.hpp"
#include "harness/oracle/judge.hpp"
#include "harness/oracle/taint.hpp"

namespace dcpcheck {

// The arena images of a launch. Each is a whole arena; again_a is a second run on poison A, null where there was none.
struct Images {
  const std::byte* before_a = nullptr;
  const std::byte* before_b = nullptr;
  const std::byte* after_a = nullptr;
  const std::byte* after_b = nullptr;
  const std::byte* again_a = nullptr;
  // Whether both runs had the same inputs. Else an element may differ between them where each is what its reference admits.
  bool alike = true;
  // What either run touched of sparse buffers outside their windows.
  std::vector<Touched> touched = {};
};

struct BufferFindings {
  std::vector<Violation> violations;  // one a reason
  std::int64_t must_write = 0, written = 0, compared = 0, tainted = 0, left_out = 0, guarded = 0;
  WorstError worst;
  bool runs_differ = false;  // a written element differs between the runs: a second run on A tells why
};

// `tensor` is an output or a cache of the plan, `spans` its write set on `rank`. Tainted elements must be written, and are
// else counted and not judged; those of rows that the reference does not know must be the same in both runs, too.
BufferFindings examine(const Plan& plan, const TensorPlan& tensor, const ArenaLayout& arena, const std::vector<Span>& spans,
                       const Expected& expected, const Taint& taint, const Inputs& inputs, std::int64_t rank,
                       const Images& images, int threads);

// How the elements of `dtype` are compared under the case's contract.
Comparison comparison_of(const Case& value, DType dtype);

// Where an element of a span stands in its tensor, as Element::index has it.
std::vector<std::int64_t> element_index(const TensorPlan& tensor, const Span& span, std::int64_t column);
// The launch's row that it belongs to: of slot maps the token is the column.
std::int64_t element_token(const TensorPlan& tensor, const Span& span, std::int64_t column);

// Puts other bytes in place of those of a span that was written whole; what it returns stands in the digest before them where
// it is not empty.
using Restate = std::function<std::string(const Span& span, Bytes& written)>;

// The digest of a buffer after run A: its name, dtype and shape, where it must be written, and the bytes that were
// written there, NaNs made one. Strides and block padding are not in it.
std::string digest_buffer(const TensorPlan& tensor, const ArenaBuffer& buffer, const std::vector<Span>& spans,
                          const Images& images, const Restate& restate = {});

}  // namespace dcpcheck
