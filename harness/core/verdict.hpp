// What came of judging a case: status, reason, and where.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dcpcheck {

enum class Status : std::uint8_t { pass, fail, crash, hang, flaky, skipped, inconclusive, not_run };

enum class Reason : std::uint8_t {
  none,
  unwritten,            // must-write bytes that hold their poison after both runs
  stray_write,          // bytes inside a buffer that must not be written
  guard,                // bytes outside every buffer
  input_changed,        // an input differs after the launch
  inadmissible,         // a value that no right kernel gives
  uninitialised_read,   // a written byte that depends on what lay in memory before
  race,                 // a written byte that differs between two runs on the same memory
  launch_refused,       // the launch was an error, as a grid past CUDA's limits is
  floating_point_mode,  // a kernel from elsewhere left its thread rounding or flushing in another way
  process_ended,        // the process of a kernel from elsewhere crashed, or left before it answered
  timed_out,            // … did not answer in time
  bad_answer,           // … answered something that is no answer to the launch
  law,                  // what two launches left differs where a law says that it is the same
  nothing_compared,     // no output and no must-not-write byte was looked at
};

std::string_view name_of(Status status);  // "not-run", …
std::string_view name_of(Reason reason);  // "stray-write", …

// One element that is wrong, as a person reads it.
struct Element {
  std::vector<std::int64_t> index;  // outputs: the tensor's index; caches: {block, row, element of the field};
                                    // stray writes and guards: {byte from the buffer's start}
  std::string field;                // of a cache record, else empty
  std::string got, admissible;
};

// One kind of wrong in one buffer of one rank.
struct Violation {
  Reason reason = Reason::none;
  std::string stage, op;  // of a pipeline: where it broke ("prefill.0", "decode.3"), and whose launch; else empty
  std::string buffer;
  std::int64_t rank = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> tokens;  // [first, last] ranges of launch rows; empty: none apply
  std::int64_t token_rows = 0;                                // how many rows those are
  std::int64_t count = 0;                                     // elements (guards and stray writes: bytes)
  std::vector<Element> first;                                 // at most 5
  std::int64_t rows = 0;                                      // the buffer's, where its rows are no tokens'; else 0
  std::string law{};                                          // Reason::law: which one
};

// Sorted numbers as [first, last] ranges.
std::vector<std::pair<std::int64_t, std::int64_t>> to_ranges(const std::vector<std::int64_t>& numbers);

struct WorstError {
  double fraction = 0;  // of the bound; 0 where every element was the reference's nearest
  std::string buffer;
  std::int64_t rank = 0;
  std::vector<std::int64_t> index;
};

struct Verdict {
  Status status = Status::not_run;
  Reason reason = Reason::none;       // the first violation's
  std::string detail;                 // one sentence where there are no coordinates (a refused launch, why it was skipped)
  std::vector<Violation> violations;  // by rank, then buffer, then reason
  std::int64_t compared = 0;          // elements whose value was judged
  std::int64_t tainted = 0;           // of a pipeline: elements that rest on bytes that nobody wrote, or that went astray
  std::int64_t left_out = 0;          // elements that the case does not have judged (a sample of the rows is)
  std::int64_t must_write = 0;        // bytes
  std::int64_t written = 0;           // … of them written
  std::int64_t guarded = 0;           // bytes that must not be written and were looked at
  WorstError worst;
};

}  // namespace dcpcheck
