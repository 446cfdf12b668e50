// Makes golden files, and holds kernels to them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/commands/cases.hpp"
#include "harness/commands/context.hpp"
#include "harness/commands/options.hpp"
#include "harness/core/json.hpp"
#include "harness/core/reader.hpp"
#include "harness/exec/divergence.hpp"
#include "harness/report/golden.hpp"

namespace dcpcheck {

// What became of a golden file's entry.
enum class GoldenStatus : std::uint8_t {
  same,
  other_bits,       // as right, in another environment or of another kernel: no failure
  outputs_differ,   //
  inputs_differ,    // the inputs of the case are made in another way, so that outputs cannot be compared
  missing,          // there is no such case (of a difference between two files: no such entry) any more
  added,            // of a difference between two files: an entry that the first does not have
  not_as_expected,  // the outputs are as they were, and yet the kernel fails the case, as where it writes beside them
  skipped,
};
std::string_view name_of(GoldenStatus status);  // "other-bits", …
bool is_failure(GoldenStatus status);

struct GoldenFinding {
  std::string id, name, op, kernel;
  GoldenStatus status = GoldenStatus::same;
  std::vector<std::string> outputs;  // that differ
  // Of an output: where it first parts from what it was. `was` is what would have been admissible where `known` is false.
  struct Place {
    std::string output;
    Divergence at;
    bool known = true;
  };
  std::vector<Place> places;         // of the first outputs that differ
  std::vector<std::string> details;  // sentences
};

struct GoldenCheck {
  std::vector<GoldenFinding> findings;
  std::vector<std::string> without;  // cases that there is no entry of
};

// What a golden file, and --cases, call the scenarios that are built in.
constexpr std::string_view kBuiltInCases = "repro:";
// The cases of the folder `where`, as they are stored. Throws InputError.
std::vector<NamedCase> cases_at(const Context& context, const std::string& where, std::int64_t memory);
// Those that `golden`, read from the file `path`, is of.
std::vector<NamedCase> golden_cases(const Context& context, const Golden& golden, const std::string& path, std::int64_t memory);

// Entries of `cases` on the kernels that `settings` asks for, or on the fixed ones. A golden vouches for what is right:
// a kernel that fails a case is a complaint, and what is not for the kernel is left out, with why.
struct GoldenMade {
  std::vector<GoldenEntry> entries;
  std::vector<std::string> complaints, left_out;
};
GoldenMade make_golden(Context& context, const RunSettings& settings, const std::vector<NamedCase>& cases);

// Runs every case of `golden` again, on its own kernel or on those that `settings` asks for, and compares.
GoldenCheck verify_golden(Context& context, const RunSettings& settings, const Golden& golden,
                          const std::vector<NamedCase>& cases);

// Compares two files, and runs nothing.
GoldenCheck compare_goldens(const Golden& was, const Golden& is);

// "rank3/kv_c_out" in its two parts; rank -1 where it has none, as tokens do not.
std::pair<std::int64_t, std::string> parts_of(const std::string& output);
std::string place_in_words(const GoldenFinding::Place& place);
json::Value to_json(const GoldenFinding::Place& place);
GoldenFinding::Place place_from_json(const Reader& place);

// 0, 1, 3 or 77, as `run` has them.
int exit_code(const GoldenCheck& check);
std::string render(const GoldenCheck& check);
json::Value to_json(const GoldenCheck& check);

}  // namespace dcpcheck
