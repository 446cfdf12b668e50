// What a run found, as a plain value. Commands fill it; each output format is a function of it in a file of its own.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/tokens.hpp"
#include "harness/core/verdict.hpp"

namespace dcpcheck {

inline constexpr std::array kStatuses{Status::pass,  Status::fail,    Status::crash,        Status::hang,
                                      Status::flaky, Status::skipped, Status::inconclusive, Status::not_run};

struct ToolInfo {
  std::string version;   // "0.1.0"
  std::string revision;  // of the source it was built from, "unknown" outside git
};

// Where the run took place.
struct Machine {
  std::string os, cpu;
  int threads = 1;
  std::string compiler;
  std::optional<std::string> cuda;     // the toolkit that the CUDA backend was built with
  std::optional<std::string> driver;   // the driver's version
  std::optional<std::string> device;   // the GPU's name
  std::vector<std::string> devices{};  // that ranks were spread over, one a seat: "0: NVIDIA H200"
  std::string transport = "none";      // between them: "none" (one seat), "host", "nccl 2.28.9"
};

// What a case should come to on a kernel.
struct Expectation {
  Status status = Status::pass;
  std::optional<std::vector<std::string>> reasons;  // each violation has one of these; absent: any
  std::optional<std::vector<std::string>> buffers;  // the violations lie in exactly these; absent: any
};

// Whether `verdict` is what was expected.
bool matches(const Expectation& expected, const Verdict& verdict);

// One case on one kernel.
struct Result {
  std::string case_reference;  // what `dcpcheck run` takes for it: a path, or "repro:<name>"
  std::string id;              // 16 hex digits
  std::string name, op;
  std::string kernel;                           // "builtin:<op>@<fault>"
  std::string fault;                            // empty: none
  std::string law;                              // that alone was asked; empty: every element was judged
  std::map<std::string, std::string> contract;  // the case's contract options, by name: what the kernel was held to
  std::string backend;
  std::int64_t world_size = 1;
  std::int64_t token_rows = 0;  // live rows of the launch
  Expectation expected;
  bool as_expected = false;
  Verdict verdict;
  std::string cause;  // what the violations have in common, as a clause; empty: nothing is known
  std::string inputs_digest, all_digest;
  std::map<std::string, std::string> output_digests;  // "rank<r>/<buffer>"; of a pipeline "rank<r>/<phase>.<op>.<buffer>"
  std::optional<Tokens> tokens;                       // of generate
  double seconds = 0;
  std::string replay;  // a command line
};

// What a Relation can be about, and, of a violation, the buffer that a pipeline's tokens are taken for.
inline constexpr std::string_view kKRows = "k_rows", kTokens = "tokens";

// Whether two runs that should agree do: the same quantity under DCP1 and under DCP4.
struct Relation {
  std::string scenario, quantity, fault, backend;  // quantity: kKRows, kTokens
  std::string dcp1;
  std::vector<std::string> dcp4;  // k_rows: one per rank; tokens: one
  bool equal = false, expected_equal = true;
  std::vector<std::vector<std::int32_t>> dcp1_ids{}, dcp4_ids{};  // tokens: by request
  // tokens: the ids differ, but right runs may differ from this step on: its choice was too narrow to be sure of.
  std::optional<std::int64_t> inconclusive_at{};

  bool as_expected() const { return equal == expected_equal && !inconclusive_at; }
};

// The first step at which any request's ids differ, one list ending before the other included; absent: they are equal.
std::optional<std::int64_t> first_difference(const std::vector<std::vector<std::int32_t>>& a,
                                             const std::vector<std::vector<std::int32_t>>& b);

struct Report {
  ToolInfo tool;
  Machine machine;
  std::vector<std::string> command;   // the words of the command line
  std::optional<std::uint64_t> seed;  // that replaced the cases' own
  std::vector<Result> results;
  std::vector<Relation> relations;
  bool paired = false;  // the results are scenarios under DCP1 and under DCP4, to be read side by side
};

struct Summary {
  std::map<Status, std::int64_t> counts;  // all statuses, zeros too
  std::int64_t total = 0;
  std::int64_t as_expected = 0;  // results
  bool ok = false;               // exit_code() is 0
};

Summary summarise(const Report& report);

// 0: all as expected and at least one ran; 1: one was not, or a relation was not; 3: nothing was vouched for;
// 77: all were skipped.
int exit_code(const Report& report);

}  // namespace dcpcheck
