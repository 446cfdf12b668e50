// One revision of a kernel: built, loaded, and held to what is asked of it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/campaign/schedule.hpp"
#include "harness/campaign/spec.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {

enum class Standing : std::uint8_t {
  good,
  bad,
  skip,  // no answer: it does not build, has no such kernel, or the kernel is not for the cases
};
std::string_view name_of(Standing standing);
// Throws InputError, its sentence beginning with `source`.
Standing standing_named(const std::string& name, const std::string& source);

// A case that revisions are held to.
struct BisectCase {
  std::string id, name;  // 16 hex digits; how a person knows it
  json::Value value;     // case_to_json
  std::string file;      // its document, for a person to run again; "": it has none yet
};

struct StepOptions {
  std::string kernel, build;      // as given: "{worktree}" stands for the checkout
  bool built = false;             // the checkout has been
  std::vector<std::string> laws;  // that cases are held to; {""}: every element is judged
  std::string golden;             // file of digests that cases are held to instead
  std::vector<BisectCase> cases;
  CampaignSpec worker;  // backend, ops and memory of the processes that run cases
  bool self_test = true;
  std::string program;  // dcpcheck's own
  std::chrono::milliseconds build_limit{3'600'000}, case_limit{60'000}, start_limit{600'000};
  const std::atomic<int>* interrupted = nullptr;
};

// What came of a revision.
struct StepResult {
  Standing standing = Standing::skip;
  std::string why;                  // a phrase: "fail (unwritten), kv_c_out", "it does not build: …"
  std::vector<std::string> what;    // of a bad one: what is wrong, a sentence each
  std::string digest;               // of the outputs of the case that decided; "" where there is none
  std::optional<std::size_t> at;    // which of the cases that was
  std::vector<std::size_t> passed;  // where all cases were wanted: those that it passes
};
json::Value to_json(const StepResult& result);
// Throws InputError, its sentence beginning with `source`.
StepResult step_from_json(const json::Value& value, const std::string& source);

// `text` with `folder` for each "{worktree}".
std::string in_worktree(const std::string& text, const std::filesystem::path& folder, bool shell);

// --kernel as that checkout has it. A command is read by a shell, so that the folder is quoted there.
std::string kernel_in(const std::string& spec, const std::filesystem::path& folder);

// What starts dcpcheck itself with the verb and options of `verb`, and with those of `options` that all verbs share.
std::vector<std::string> program_words(const StepOptions& options, const std::vector<std::string>& verb);

// Builds the checkout. "" where that succeeded; else why not, a phrase. What it prints goes to `log`, too.
std::string build(const StepOptions& options, const std::filesystem::path& folder, const std::string& log);

// The lane of the kernel, as the checkout in `folder`, built before, has it: its op, and what it declares of its cases. Nothing
// where it cannot be loaded; `why` then says why not, a phrase. Throws InputError where it is one that no checkout changes.
std::optional<Lane> lane_in(const StepOptions& options, const std::filesystem::path& folder, std::string& why);

enum class Extent : std::uint8_t {
  first_failure,  // up to the first case that the kernel fails: bad where there is one
  every_case,     // good where it passes any
};

// Builds the checkout in `folder`, loads the kernel, and holds it to the cases, those of `only` where any are named. Throws
// HarnessError where dcpcheck itself fails, and InputError where the kernel is one that no checkout changes.
StepResult step(const StepOptions& options, const std::filesystem::path& folder, const std::string& log,
                const std::vector<std::size_t>& only = {}, Extent extent = Extent::first_failure);

// Throws HarnessError where a process of dcpcheck's own does not start with the kernels that come with it: then no revision can
// be blamed for one that does not.
void check_harness(const StepOptions& options);

}  // namespace dcpcheck
