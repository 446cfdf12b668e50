// One launch of a kernel on one rank: run on both poisons, then judged.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/verdict.hpp"
#include "harness/exec/backend.hpp"
#include "harness/exec/examine.hpp"
#include "harness/exec/kernel.hpp"
#include "harness/memory/arena.hpp"
#include "harness/oracle/admissible.hpp"
#include "harness/oracle/taint.hpp"

namespace dcpcheck {

// What a run on one poison starts from.
struct Side {
  const Inputs* inputs = nullptr;
  // What buffers of the arena hold beforehand in place of poison, their whole storage: caches that earlier launches wrote.
  std::map<std::string, const Bytes*, std::less<>> held;
};

// Memory for the arena images of one launch at a time; grows, and is used again by the next.
class LaunchMemory {
 public:
  explicit LaunchMemory(Backend& backend) : backend_(&backend) {}
  void reserve(std::int64_t bytes);

  HostMemory before_a, before_b;
  std::shared_ptr<std::byte> after_a, after_b;
  std::shared_ptr<std::byte> again_a();  // made where it is needed

 private:
  Backend* backend_;
  std::int64_t bytes_ = 0;
  std::shared_ptr<std::byte> again_a_;
};

// What judging one launch found.
struct LaunchFindings {
  std::vector<Violation> violations;
  std::int64_t compared = 0, tainted = 0, left_out = 0, must_write = 0, written = 0, guarded = 0;
  WorstError worst;
  std::map<std::string, std::string> digests;  // by buffer, of run A
  std::map<std::string, std::string>
      consumed;  // by buffer: SHA-256 of run A's bytes of its must-write rows, whatever they hold
};

// Adds what a launch found to the verdict of its case.
void add_findings(LaunchFindings&& findings, Verdict& verdict);

// Ends the verdict of a case at a launch that left nothing to judge, `where` it was. A case that the kernel is not for is
// skipped, but where an earlier launch of it was wrong.
void end_at(const LaunchError& error, const std::string& where, Verdict& verdict);

class RankLaunch {
 public:
  // Everything must outlive the object; `memory` is its own until it goes. `seat`: see Backend::place.
  RankLaunch(const Plan& plan, const ArenaLayout& arena, const Kernel& kernel, Backend& backend, LaunchMemory& memory,
             std::int64_t rank, std::int64_t seat, int threads);

  // Runs on both poisons; not at all where the kernel is not for the case. Throws HarnessError where the backend itself fails.
  LaunchError run(const Side& a, const Side& b);

  // After run(): whether the two runs left other bytes somewhere that must be written.
  bool runs_differ() const;

  // After run(): whether the two runs left the same bytes wherever something must be written, and none anywhere else.
  bool clean();
  // After run(): of each buffer, of run A.
  const std::map<std::string, std::string>& digests();

  // After run(): the same of portable digests; `expected` is what is admissible on side A.
  std::map<std::string, std::string> portable_digests(const Expected& expected) const;

  // After run(): calls f(span, bytes) for each span of buffer `name` that must be written, with what run A left there.
  void each_written(std::string_view name,
                    const std::function<void(const Span& span, std::span<const std::byte> bytes)>& f) const;

  // After run(). `expected` is what is admissible on side A, `taint` which of it rests on memory that nobody wrote;
  // `consumed` names the buffers of LaunchFindings::consumed.
  LaunchFindings judge(const Expected& expected, const Taint& taint, const std::vector<std::string>& consumed);

  // The storage of buffer `name` after the run on A, or on B.
  std::span<const std::byte> after(Poison poison, std::string_view name) const;
  // … and before it.
  std::span<const std::byte> before(Poison poison, std::string_view name) const;

 private:
  const ArenaBuffer& buffer_of(const TensorPlan& tensor) const;
  bool one_sided() const { return a_.inputs == b_.inputs; }
  LaunchError launch(Placement& placement, const HostMemory& before, const std::shared_ptr<std::byte>& after);
  void add_touched(const std::vector<Touched>& more);
  void fill(HostMemory& image, const Side& side, Poison poison);
  std::string digest_consumed(const ArenaBuffer& buffer, const std::vector<Span>& spans) const;

  const Plan& plan_;
  const ArenaLayout& arena_;
  const Kernel& kernel_;
  Backend& backend_;
  LaunchMemory& memory_;
  std::int64_t rank_, seat_;
  int threads_;
  Side a_, b_;
  std::unique_ptr<Placement> placement_a_, placement_b_;  // b: only where its inputs are others
  std::map<std::string, std::string> digests_;
  std::map<std::pair<std::string, std::int64_t>, Touched> touched_;  // by either run, by buffer and page
};

}  // namespace dcpcheck
