#include "harness/exec/runner.hpp"

#include <chrono>
#include <cstring>
#include <utility>

#include "harness/core/digest.hpp"
#include "harness/core/error.hpp"
#include "harness/exec/examine.hpp"

namespace dcpcheck {
namespace {

std::string digest_input(const TensorPlan& tensor, Bytes storage) {
  Sha256 sha;
  sha.add(tensor.name).add("|").add(name_of(tensor.dtype));
  for (const std::int64_t n : tensor.shape) sha.add(n);
  for (const std::int64_t n : tensor.strides) sha.add(n);
  sha.add(tensor.offset);
  canonicalise_nans(storage, tensor.dtype);
  return sha.add(storage).hex();
}

std::string digest_inputs(const Plan& plan, const Inputs& inputs) {
  std::map<std::string, std::string> digests;
  for (const TensorPlan& tensor : plan.tensors) {
    if (tensor.role != Role::in) continue;
    if (!tensor.spec->per_rank) {
      digests[tensor.name] = digest_input(tensor, inputs.get(tensor.name, 0));
      continue;
    }
    for (std::int64_t rank = 0; rank < plan.value.geometry.tp; ++rank) {
      digests["rank" + std::to_string(rank) + "/" + tensor.name] = digest_input(tensor, inputs.get(tensor.name, rank));
    }
  }
  for (const auto& [name, ranks] : inputs.prefix) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      Sha256 sha;
      for (const auto& [slot, record] : ranks[rank]) sha.add(slot).add(record);
      digests["rank" + std::to_string(rank) + "/" + name + " before"] = sha.hex();
    }
  }
  return combine_digests(digests);
}

const std::vector<Expected>& expected_for(Prepared& prepared, int lanes, int threads) {
  std::vector<Expected>& ranks = prepared.expected[lanes];
  const std::int64_t needed = prepared.plan.op->rank_reference ? prepared.plan.value.geometry.tp : 1;
  for (auto rank = static_cast<std::int64_t>(ranks.size()); rank < needed; ++rank) {
    ranks.push_back(prepared.reference(prepared.plan, prepared.inputs, rank, {threads, lanes}));
  }
  return ranks;
}

class CaseRun {
 public:
  CaseRun(Prepared& prepared, const Kernel& kernel, Backend& backend, const RunOptions& options)
      : prepared_(prepared),
        plan_(prepared.plan),
        kernel_(kernel),
        backend_(backend),
        options_(options),
        arena_(arena_layout(plan_)),
        before_a_(arena_.bytes),
        before_b_(arena_.bytes) {
    after_a_ = backend.image_memory(arena_.bytes);
    after_b_ = backend.image_memory(arena_.bytes);
  }

  CaseResult run() {
    const auto start = std::chrono::steady_clock::now();
    CaseResult result;
    result.inputs_digest = prepared_.inputs_digest;
    Verdict& verdict = result.verdict;
    for (std::int64_t rank = 0; rank < plan_.value.geometry.tp; ++rank) {
      check_interrupted();
      if (!run_rank(rank, result)) break;
    }
    result.all_digest = combine_digests(result.outputs);
    if (verdict.status == Status::not_run) {
      verdict.status = verdict.violations.empty() ? Status::pass : Status::fail;
      if (!verdict.violations.empty()) verdict.reason = verdict.violations.front().reason;
      if (verdict.violations.empty() && verdict.compared == 0 && verdict.guarded == 0) {
        verdict.status = Status::fail;
        verdict.reason = Reason::nothing_compared;
        verdict.detail = "no output and no must-not-write byte was there to look at";
      }
    }
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
  }

 private:
  void check_interrupted() const {
    if (options_.interrupted && options_.interrupted->load() != 0) throw Interrupted(options_.interrupted->load());
  }

  // False where the launch was refused: then no further rank is tried.
  bool run_rank(std::int64_t rank, CaseResult& result) {
    Verdict& verdict = result.verdict;
    const auto placement = backend_.place(plan_, prepared_.inputs, rank, arena_);
    fill_arena(before_a_.span(), arena_, plan_, prepared_.inputs, rank, Poison::A);
    fill_arena(before_b_.span(), arena_, plan_, prepared_.inputs, rank, Poison::B);
    LaunchError refused = launch(*placement, before_a_, after_a_);
    if (refused.empty()) refused = launch(*placement, before_b_, after_b_);
    if (!refused.empty()) {
      verdict.status = Status::fail;
      verdict.reason = Reason::launch_refused;
      verdict.detail = "rank " + std::to_string(rank) + ": " + refused;
      return false;
    }
    check_interrupted();
    Images images{before_a_.data(), before_b_.data(), after_a_.get(), after_b_.get(), nullptr};
    const Expected& expected =
        expected_for(prepared_, kernel_.lanes, options_.threads)[plan_.op->rank_reference ? static_cast<std::size_t>(rank) : 0];
    bool again = false;
    for (const TensorPlan& tensor : plan_.tensors) {
      if (tensor.role == Role::in) continue;
      const std::vector<Span> spans = write_set(plan_, tensor, prepared_.inputs, rank);
      BufferFindings findings =
          examine(plan_, tensor, arena_, spans, expected, prepared_.inputs, rank, images, options_.threads);
      if (findings.runs_differ) {
        if (!again) {
          if (!again_a_) again_a_ = backend_.image_memory(arena_.bytes);
          // A refusal here would be news, but what the two runs showed stands without the third.
          if (launch(*placement, before_a_, again_a_).empty()) images.again_a = again_a_.get();
          again = true;
        }
        findings = examine(plan_, tensor, arena_, spans, expected, prepared_.inputs, rank, images, options_.threads);
      }
      add(findings, verdict);
      record_digests(tensor, spans, images, rank, result);
    }
    for (const ChangedInput& input : placement->changed_inputs()) {
      Violation violation;
      violation.reason = Reason::input_changed;
      violation.buffer = input.name;
      violation.rank = rank;
      violation.count = input.bytes;
      violation.first = {{{input.first}, "", "another byte", "the byte that was placed"}};
      verdict.violations.push_back(std::move(violation));
    }
    return true;
  }

  LaunchError launch(Placement& placement, const HostMemory& before, const std::shared_ptr<std::byte>& after) {
    std::memcpy(after.get(), before.data(), static_cast<std::size_t>(arena_.bytes));
    return placement.run(kernel_, {after.get(), static_cast<std::size_t>(arena_.bytes)}, options_.threads);
  }

  static void add(BufferFindings& findings, Verdict& verdict) {
    verdict.compared += findings.compared;
    verdict.must_write += findings.must_write;
    verdict.written += findings.written;
    verdict.guarded += findings.guarded;
    if (verdict.worst.buffer.empty() || findings.worst.fraction > verdict.worst.fraction) verdict.worst = findings.worst;
    for (Violation& violation : findings.violations) verdict.violations.push_back(std::move(violation));
  }

  void record_digests(const TensorPlan& tensor, const std::vector<Span>& spans, const Images& images, std::int64_t rank,
                      CaseResult& result) const {
    const ArenaBuffer& buffer = arena_.buffer(tensor.in_place_of.empty() ? tensor.name : tensor.in_place_of);
    const std::string key = "rank" + std::to_string(rank) + "/" + tensor.name;
    result.outputs[key] = digest_buffer(tensor, buffer, spans, images);
    for (const std::string& name : options_.consumed) {
      if (name != tensor.name) continue;
      Sha256 sha;
      for (const Span& span : spans) {
        if (span.duty != Duty::must) continue;
        const std::byte* bytes = images.after_a + buffer.offset + span.begin;
        sha.add(std::span(bytes, static_cast<std::size_t>(span.end - span.begin)));
      }
      result.consumed[key] = sha.hex();
    }
  }

  Prepared& prepared_;
  const Plan& plan_;
  const Kernel& kernel_;
  Backend& backend_;
  const RunOptions& options_;
  ArenaLayout arena_;
  HostMemory before_a_, before_b_;
  std::shared_ptr<std::byte> after_a_, after_b_, again_a_;  // again_a_: made where it is needed
};

}  // namespace

Prepared prepare(const Op& op, const Reference& reference, const Case& value, std::int64_t memory_budget, int threads,
                 const std::string& source) {
  Prepared prepared;
  prepared.plan = make_plan(op, value, memory_budget, source);
  prepared.inputs = make_inputs(prepared.plan, threads);
  prepared.inputs_digest = digest_inputs(prepared.plan, prepared.inputs);
  prepared.reference = reference;
  return prepared;
}

CaseResult run_case(Prepared& prepared, const Kernel& kernel, Backend& backend, const RunOptions& options) {
  return CaseRun(prepared, kernel, backend, options).run();
}

}  // namespace dcpcheck
