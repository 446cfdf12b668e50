// Golden files: what kernels once came to, case by case, as digests. A golden file holds no tensor; it is readable JSON,
// sorted, and the same bytes whenever the same is written (reports/schema/golden.schema.json).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dcpcheck {

// Of one output or cache of one rank, or a pipeline's tokens. SHA-256, 64 hex digits.
struct GoldenOutput {
  std::string raw;       // of the bits
  std::string portable;  // of what every right kernel comes to (exec/portable.hpp); empty: it cannot be said
  friend bool operator==(const GoldenOutput&, const GoldenOutput&) = default;
};

// What the bits of a kernel from elsewhere may depend on. Ours are the same everywhere.
struct GoldenEnvironment {
  std::string kernel;                       // as the kernel calls itself
  std::string architecture;                 // the GPU's name, or the CPU's
  std::optional<std::string> driver, cuda;  // the GPU's driver, the toolkit that dcpcheck was built with
  friend bool operator==(const GoldenEnvironment&, const GoldenEnvironment&) = default;
};

// One case on one kernel.
struct GoldenEntry {
  std::string id;    // 16 hex digits
  std::string name;  // of the case; may be empty
  std::string op, kernel;
  std::map<std::string, std::string> contract;
  std::optional<GoldenEnvironment> environment;  // of a kernel from elsewhere
  std::string inputs;                            // the inputs' digest
  std::map<std::string, GoldenOutput> outputs;   // "rank<r>/<buffer>"; of a pipeline "rank<r>/<phase>.<op>.<buffer>", "tokens"
  std::optional<std::vector<std::vector<std::int32_t>>> tokens;  // of a pipeline: by request
  friend bool operator==(const GoldenEntry&, const GoldenEntry&) = default;
};

struct Golden {
  // Where the cases are: a folder, from the golden file's own; or "repro:", the scenarios that are built in.
  std::string cases;
  std::vector<GoldenEntry> entries;  // one a case, sorted by name, then id
  friend bool operator==(const Golden&, const Golden&) = default;
};

// The file's text, entries sorted.
std::string golden_text(Golden golden);

// Throws InputError that names the place and the rule, in a sentence that begins with `source`.
Golden parse_golden(std::string_view text, const std::string& source);
Golden load_golden(const std::string& path);

// How an entry differs from another of the same case.
enum class GoldenChange : std::uint8_t {
  none,
  bits,     // other bits that are as right, in another environment or of another kernel: no failure
  outputs,  // outputs differ
  inputs,   // the case's inputs are others, and so nothing can be said of its outputs
};

struct GoldenDifference {
  GoldenChange change = GoldenChange::none;
  std::vector<std::string> outputs;  // those that make it one, by name; sorted
};

// What became of `was`. Where the bits of an output differ and the portable digest does not, that is none that matters where
// the two are of other kernels or environments, and one of the outputs where both are the same.
GoldenDifference difference_of(const GoldenEntry& was, const GoldenEntry& is);

}  // namespace dcpcheck
